import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe } from "vitest";

/** What a test may need that a machine may not have. Each gives where it is, or undefined. */
const FINDERS = {
  chromium: () =>
    process.env.CHROMIUM_PATH ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p)),
  /** The folder of initdb and postgres; tests start a throw-away cluster of their own from it. */
  postgresql: () => {
    const base = "/usr/lib/postgresql";
    const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
    return versions.map((v) => `${base}/${v}/bin`).find((p) => existsSync(`${p}/initdb`));
  },
  pgbouncer: () => ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((p) => existsSync(p)),
  nginx: () => ["/usr/sbin/nginx", "/usr/bin/nginx"].find((p) => existsSync(p)),
  strace: () => ["/usr/bin/strace", "/usr/local/bin/strace"].find((p) => existsSync(p)),
  /** The node_modules of test/clients: `npm ci --prefix test/clients`. */
  clients: () => {
    const path = fileURLToPath(new URL("../clients/node_modules/", import.meta.url));
    return existsSync(path) ? path : undefined;
  },
  bigann10k: () => {
    const path = fileURLToPath(new URL("../../../shared/data/bigann10k/", import.meta.url));
    return existsSync(path) ? path : undefined;
  },
} as const;

const REMEDIES = {
  chromium: "needs Chromium (Debian: apt-get install chromium, or set CHROMIUM_PATH)",
  postgresql: "needs PostgreSQL 15 or later (Debian: apt-get install postgresql)",
  pgbouncer: "needs PgBouncer (Debian: apt-get install pgbouncer)",
  nginx: "needs nginx (Debian: apt-get install nginx-light)",
  strace: "needs strace (Debian: apt-get install strace)",
  clients: "needs the published clients (npm run clients)",
  bigann10k: "needs the bigann10k vectors in ../shared/data",
} as const;

export type Requirement = keyof typeof FINDERS;

/** `describe` where the machine has what is needed, else a skipped suite whose name tells the skip reporter why. */
export function describeWith(requirement: Requirement, name: string, body: (path: string) => void): void {
  const path = FINDERS[requirement]();
  if (path === undefined) describe.skip(`${name} [skipped: ${REMEDIES[requirement]}]`, () => body(""));
  else describe(name, () => body(path));
}
