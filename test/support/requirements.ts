import { describe } from "vitest";
import { FINDERS, type Requirement } from "./finders.ts";

const REMEDIES = {
  chromium: "needs Chromium (Debian: apt-get install chromium, or set CHROMIUM_PATH)",
  firefox: "needs Firefox (Debian: apt-get install firefox-esr, or set FIREFOX_PATH)",
  postgresql: "needs PostgreSQL 15 or later (Debian: apt-get install postgresql)",
  pgbouncer: "needs PgBouncer (Debian: apt-get install pgbouncer)",
  nginx: "needs nginx (Debian: apt-get install nginx-light)",
  python: "needs Python 3 (Debian: apt-get install python3)",
  strace: "needs strace (Debian: apt-get install strace)",
  containers: "needs root on Debian, with namespaces allowed, and ip (apt-get install iproute2)",
  clients: "needs the published clients (npm run clients)",
  bigann10k: "needs the bigann10k vectors in ../shared/data",
} as const;

/** Which of the projects of `test/projects.ts` runs. Without it (mutation tests) everything does. */
const PROJECT = process.env.LODESTONE_TESTS;

/**
 * `describe` if the machine has the requirement, else a skipped suite whose name tells the skip reporter why. Its
 * tests are collected all the same, with a path at which there is nothing. The quick tests leave it to `thorough`.
 */
export function describeWith(requirement: Requirement, name: string, body: (path: string) => void): void {
  if (PROJECT === "quick") return;
  const path = FINDERS[requirement]();
  if (path === undefined) describe.skip(`${name} [skipped: ${REMEDIES[requirement]}]`, () => body("/not-installed"));
  else describe(name, () => body(path));
}

/** `describe`, for suites beside `describeWith`: `thorough` does not repeat what the quick tests have run. */
export function describeOnce(name: string, body: () => void): void {
  if (PROJECT !== "thorough") describe(name, body);
}

/** `describe`, for suites that the quick tests leave to `thorough` because they take long. */
export function describeLater(name: string, body: () => void): void {
  if (PROJECT !== "quick") describe(name, body);
}
