/**
 * Loads the demo colours into `demo:main`, in a running server (`lodestone demo`) or in a store of this process
 * (`serve --demo`), and says what to ask it. It is safe to do so twice.
 */
import type { Command } from "commander";
import type { RecordStore } from "../records/record-store.ts";
import type { TransactionOperation } from "../records/requests.ts";
import type { BranchRef } from "../records/schema.ts";
import { type ApiClient, branchPath } from "./api-client.ts";
import { DEMO_COLUMNS, DEMO_TABLE, demoColors } from "./demo-colors.ts";

export function demoCommand(command: Command, clientOf: (options: { url: string; apiKey?: string }) => ApiClient): Command {
  return command
    .description("Load the demo into a running server: the 148 CSS named colours as Lab vectors in demo:main.")
    .action(async (options: { url: string; apiKey?: string }) => {
      const client = clientOf(options);
      await loadDemoOverHttp(client);
      console.log(
        `The table "${DEMO_TABLE}" is in ${DEMO_REF.database}:${DEMO_REF.branch}. Which colours are nearest to rebeccapurple?\n\n${demoCurl(client.url)}`,
      );
    });
}

export const DEMO_REF: BranchRef = { database: "demo", branch: "main" };

/** An insert with an id replaces the record, so loading the colours again restores them. */
function demoOperations(): TransactionOperation[] {
  return demoColors().map((color) => ({ insert: { table: DEMO_TABLE, record: { ...color, lab: [...color.lab] } } }));
}

export async function loadDemoIntoStore(records: RecordStore): Promise<void> {
  await records.createBranch(DEMO_REF);
  const { tables } = await records.schema(DEMO_REF);
  if (!tables.some(({ name }) => name === DEMO_TABLE)) await records.createTable(DEMO_REF, DEMO_TABLE, DEMO_COLUMNS);
  await records.transaction(DEMO_REF, demoOperations());
}

async function loadDemoOverHttp(client: ApiClient): Promise<void> {
  await client.createBranch(DEMO_REF);
  if ((await client.tableColumns(DEMO_REF, DEMO_TABLE)) === undefined) await client.createTable(DEMO_REF, DEMO_TABLE, DEMO_COLUMNS);
  await client.request("POST", `${branchPath(DEMO_REF)}/transaction`, { operations: demoOperations() });
}

/** For rebeccapurple; the answer's first results can be judged by eye. */
export function demoCurl(url: string): string {
  return `curl -s ${url}${branchPath(DEMO_REF)}/tables/${DEMO_TABLE}/vectorSearch \\
  -H 'Content-Type: application/json' \\
  -d '{"column": "lab", "queryVector": [32.902, 42.883, -47.149], "similarityFunction": "l2", "size": 5}'`;
}
