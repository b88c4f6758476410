import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** What a test may need and a machine may lack. Each finder returns where it is, or undefined. */
export const FINDERS = {
  chromium: () =>
    process.env.CHROMIUM_PATH ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((p) => existsSync(p)),
  firefox: () => process.env.FIREFOX_PATH ?? ["/usr/bin/firefox-esr", "/usr/bin/firefox"].find((p) => existsSync(p)),
  /** The folder of initdb and postgres, with which tests start a throw-away cluster. */
  postgresql: () => {
    const base = "/usr/lib/postgresql";
    const versions = existsSync(base) ? readdirSync(base).sort((a, b) => Number(b) - Number(a)) : [];
    return versions.map((v) => `${base}/${v}/bin`).find((p) => existsSync(`${p}/initdb`));
  },
  pgbouncer: () => ["/usr/sbin/pgbouncer", "/usr/bin/pgbouncer"].find((p) => existsSync(p)),
  nginx: () => ["/usr/sbin/nginx", "/usr/bin/nginx"].find((p) => existsSync(p)),
  python: () =>
    (process.env.PATH ?? "")
      .split(":")
      .map((folder) => `${folder}/python3`)
      .find((p) => existsSync(p)),
  strace: () => ["/usr/bin/strace", "/usr/local/bin/strace"].find((p) => existsSync(p)),
  /** dpkg-query of a Debian machine on which this process may make namespaces and a network interface. */
  containers: () => {
    const dpkgQuery = "/usr/bin/dpkg-query";
    if (!existsSync(dpkgQuery)) return undefined;
    const made = spawnSync("unshare", ["--mount", "--net", "ip", "link", "set", "lo", "up"], { stdio: "ignore" });
    return made.status === 0 ? dpkgQuery : undefined;
  },
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

export type Requirement = keyof typeof FINDERS;

/** Where it is, for tests that cannot be skipped. */
export function pathOf(requirement: Requirement): string {
  const path = FINDERS[requirement]();
  if (path === undefined) throw new Error(`This machine has no ${requirement}.`);
  return path;
}
