/** A setup file of vitest: a test that fails prints what the servers that ran meanwhile have logged. */
import { afterEach, beforeEach } from "vitest";
import { STARTED } from "./server.ts";
import { sharedLog } from "./shared-server.ts";

const SHOWN_CHARACTERS = 8_000;

beforeEach(() => {
  for (const server of STARTED) if (!server.isRunning) STARTED.delete(server);
});

afterEach(async ({ task }) => {
  if (task.result?.state !== "fail") return;
  const logs = [...STARTED].map(({ url, log }) => ({ url, log }));
  for (const { url, log } of [...logs, ...(await sharedLog())])
    console.error(`the log of the server at ${url}:\n${log.slice(-SHOWN_CHARACTERS)}`);
});
