/**
 * `npm run soak:hostile -- --minutes 60 [--attackers 6] [--key hostile|reader] [--kind "sql: …"]
 * [--database-url postgres://…]`: one caller sends hostile but valid requests while others work beside it,
 * and everything is checked. Exit code 1 on any exit of the server, any 5xx that is not 503 or 504 with
 * Retry-After, any change despite an error, any refusal of the other callers, a 99th percentile of theirs
 * above 250 ms, a wait of theirs above 3 s, memory above the limit, or memory that keeps rising.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeKeyFile } from "../test/reliability/hostile/stage.ts";
import { hostileRun } from "../test/reliability/hostile-run.ts";
import { startServer } from "../test/support/server.ts";
import { readOptions } from "./read-options.mjs";

const OTHERS_P99_LIMIT_MS = 250;
const OTHERS_LONGEST_LIMIT_MS = 3_000;
/**
 * The last quarter's memory, relative to the second's: in the first everything is met for the first time. What grows are the records
 * that are written, which stay; one session's memory that is kept each time would be a multiple.
 */
const RSS_GROWTH_LIMIT = 1.25;

const values = readOptions(import.meta.url, {
  minutes: { type: "string", default: "60" },
  attackers: { type: "string", default: "6" },
  seed: { type: "string", default: "1" },
  key: { type: "string", default: "hostile" },
  kind: { type: "string", multiple: true },
  "max-rss": { type: "string", default: "4096" },
  "database-url": { type: "string" },
});
const folder = mkdtempSync(join(tmpdir(), "lodestone-hostile-"));
const keyFile = join(folder, "keys.json");
writeKeyFile(keyFile);
const databaseUrl = values["database-url"];
const server = await startServer({
  env: { LODESTONE_LOG_LEVEL: "warn", LODESTONE_STATEMENT_TIMEOUT: undefined },
  args: ["--key-file", keyFile],
  ...(databaseUrl === undefined ? {} : { databaseUrl }),
});
try {
  const report = await hostileRun({
    server,
    seconds: Number(values.minutes) * 60,
    attackers: Number(values.attackers),
    seed: Number(values.seed),
    key: values.key,
    ...(values.kind === undefined ? {} : { kinds: values.kind }),
    size: { texts: 1_000, bigRecords: 10, bigCharacters: 10_000_000, smallRecords: 1_000 },
    onProgress: (line) => console.log(line),
  });
  console.log(JSON.stringify(report, null, 2));
  const { exits, wrongErrors, behindErrors, othersRefused, others, peakRssMegabytes, rssMegabytes, isReadyAfterwards } = report;
  const faults = exits.length + wrongErrors.length + behindErrors.length + Object.keys(othersRefused).length;
  const isSlow = others.all.p99Ms > OTHERS_P99_LIMIT_MS || others.all.maxMs > OTHERS_LONGEST_LIMIT_MS;
  const isLarge = peakRssMegabytes > Number(values["max-rss"]) || rssMegabytes.at(-1) > RSS_GROWTH_LIMIT * rssMegabytes[1];
  process.exitCode = faults > 0 || isSlow || isLarge || !isReadyAfterwards ? 1 : 0;
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}
