/**
 * The parts of the tests, as vitest's projects. `npm test` runs `quick`; `npm run test:rest` runs the other two.
 *
 * - `quick`: what the project is for. It needs nothing but Node, has fixed seeds and few random cases, and takes less than five
 *   minutes on two cores. A file that is not named below is part of it. Its files share processes and servers (`isolate: false`).
 * - `thorough`: the same files again, only what `quick` leaves out of them: suites that need PostgreSQL or another program, and all
 *   random cases.
 * - `rest`: the files and folders below: soaks, crashes, outages, pages in a browser, packages, large data, and slow commands.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Not part of `npm test`: folders, and files without `.test.ts`. */
const REST: readonly string[] = [
  "bench",
  "browser",
  "cli/bigann",
  "cli/export",
  "cli/import",
  "cli/max-memory",
  "cli/migrate",
  "cli/serve",
  "clients",
  "cluster",
  "console",
  "deploy/key-file-owner",
  "http/answer-budget",
  "http/body-memory",
  "http/client-gone",
  "http/descriptors",
  "http/durability",
  "http/cross-site-requests",
  "http/fuzz",
  "http/large-values",
  "http/limits",
  "http/load-limits",
  "http/sql-time-limit",
  "http/vectors",
  "mcp/endpoint",
  "mcp/tools",
  "packages/documents",
  "records/catalog/few-rights",
  "records/catalog/upgrade",
  "records/engine/connections",
  "records/engine/directory-lock",
  "records/engine/durability",
  "records/engine/lingering-backends",
  "records/engine/long-texts",
  "records/engine/maintenance",
  "records/engine/outage",
  "records/engine/pooler",
  "records/engine/server-engine",
  "records/engine/start-errors",
  "records/feed/commit-order",
  "records/feed/feed-faults",
  "records/feed/idle",
  "records/feed/large-records",
  "records/feed/promotion",
  "reliability",
  "replica/keys",
  "replica/proxies",
  "replica/several-servers",
  "search/vectors-crash",
  "sdk/migrating",
  "sdk/python",
  "search/damaged-snapshot",
  "search/sql/exact-search",
  "search/sql/sql-engine",
];

const TEST = fileURLToPath(new URL(".", import.meta.url));

const patternsOf = (place: string): string[] => [`test/${place}/**/*.test.ts`, `test/${place}.test.ts`];
export const REST_FILES = REST.flatMap(patternsOf);

const isOfRest = (path: string): boolean => REST.some((place) => path === `${place}.test.ts` || path.startsWith(`${place}/`));

/** What only suites use that `quick` leaves out, or runs in part. */
const LEFT_OUT = /describeWith\(|describeLater\(|describeOnEngines\(|describeOnBothEngines\(|random-runs\.ts"/;

/** The quick files of which something is left to `thorough`. */
export function thoroughFiles(): string[] {
  const files = readdirSync(TEST, { recursive: true, encoding: "utf8" }).map((path) => path.replaceAll("\\", "/"));
  return files
    .filter((path) => path.endsWith(".test.ts") && !/node_modules|^container\/|^packages\//.test(path) && !isOfRest(path))
    .filter((path) => LEFT_OUT.test(readFileSync(TEST + path, "utf8")))
    .map((path) => `test/${path}`);
}
