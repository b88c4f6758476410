/** Asks vitest's main process for what it keeps for several test files, which it starts if this worker has none yet (`test-host.ts`). */
export async function askHost<Answer>(kind: "server" | "postgres"): Promise<Answer> {
  const response = await fetch(`${process.env.LODESTONE_TEST_HOST}/${kind}%20${process.env.VITEST_POOL_ID}`);
  const body = await response.json();
  if (!response.ok) throw new Error(body as string);
  return body as Answer;
}
