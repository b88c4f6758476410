/**
 * `npm run bench:slices [-- --kind json --kind "sql: wide"]`: each kind of hostile request by itself, three
 * times, and the CPU time of the longest slice that the server's event loop spent on it. Linux only. Exit code
 * 1 if one is longer than 50 ms.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { KeyedClient } from "../test/reliability/hostile/client.ts";
import { HOSTILE_KINDS, hostileRequest } from "../test/reliability/hostile/hostile-requests.ts";
import { keyOf, prepareStage, writeKeyFile } from "../test/reliability/hostile/stage.ts";
import { Random } from "../test/reliability/workload/random.ts";
import { startServer } from "../test/support/server.ts";
import { longestSlice, meterEnvironment } from "./longest-slice.mjs";
import { readOptions } from "./read-options.mjs";

const MOST_MS = 50;
const TIMES = 3;
const STAGE = { texts: 1_000, bigRecords: 10, bigCharacters: 10_000_000, smallRecords: 1_000 };

const values = readOptions(import.meta.url, { kind: { type: "string", multiple: true }, seed: { type: "string", default: "1" } });
const isWanted = (kind) => values.kind === undefined || values.kind.some((part) => kind.includes(part));
const seed = Number(values.seed);
const random = new Random(seed);
const folder = mkdtempSync(join(tmpdir(), "lodestone-slices-"));
const [keyFile, slices] = [join(folder, "keys.json"), join(folder, "slices")];
writeKeyFile(keyFile);
const server = await startServer({
  env: { LODESTONE_LOG_LEVEL: "warn", ...meterEnvironment(slices) },
  args: ["--key-file", keyFile],
});

try {
  const judge = new KeyedClient(server.port, keyOf("judge"), 8);
  await prepareStage(judge, STAGE, seed);
  judge.close();
  for (const kind of HOSTILE_KINDS.filter(isWanted)) {
    const measured = [];
    for (let i = 0; i < TIMES; i++) {
      const client = new KeyedClient(server.port, keyOf("hostile"));
      const { method, path, body, options } = hostileRequest(kind, random, `mark-${seed}-${kind}-${i}`);
      await longestSlice(server.pid, slices);
      const { status } = await client.send(method, path, method === "GET" ? undefined : body, options);
      const ms = await longestSlice(server.pid, slices);
      client.close();
      measured.push(`${status ?? "left"}: ${ms.toFixed(0)} ms`);
      if (ms > MOST_MS) process.exitCode = 1;
    }
    console.log(`${kind.padEnd(44)} ${measured.map((text) => text.padEnd(14)).join("")}`);
  }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
