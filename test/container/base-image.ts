/**
 * A root file system like that of the image on which deploy/Containerfile builds, made without a registry or
 * a mirror: Debian's essential packages, as they are installed on this machine, and this machine's Node and
 * npm. Nothing else is there: no compiler, no Python, no git.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, realpathSync, symlinkSync } from "node:fs";
import { join } from "node:path";

/** What Node needs besides the essential packages. */
const FOR_NODE = ["libstdc++6"];
/** On a merged-/usr system these are links. */
const TOP_FOLDERS = ["bin", "sbin", "lib", "lib32", "lib64", "libx32"];
const EMPTY_FOLDERS = ["dev", "etc", "proc", "root", "run", "sys", "tmp", "var/tmp"];
const NOT_COPIED = /^\/usr\/share\/(doc|info|locale|man)\//;
/** Files of this machine that programs need in order to reach the network as they do here. */
const NETWORK_FILES = ["/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ssl/certs/ca-certificates.crt"];

/** @param root  a folder that does not exist yet. Takes some seconds and about 250 MB; needs root. */
export function makeBaseImage(dpkgQuery: string, root: string): void {
  for (const folder of EMPTY_FOLDERS) mkdirSync(join(root, folder), { recursive: true });
  for (const folder of ["tmp", "var/tmp"]) chmodSync(join(root, folder), 0o1777);
  for (const folder of TOP_FOLDERS) {
    if (lstatSync(`/${folder}`, { throwIfNoEntry: false })?.isSymbolicLink() !== true) continue;
    const target = readlinkSync(`/${folder}`);
    mkdirSync(join(root, target), { recursive: true });
    symlinkSync(target, join(root, folder));
  }
  const files = filesOf(dpkgQuery, packagesOf(dpkgQuery));
  const archive = execFileSync("tar", ["-C", "/", "--no-recursion", "-cf", "-", "-T", "-"], {
    input: files.map((file) => `.${file}`).join("\n"),
    maxBuffer: 2 ** 30,
  });
  execFileSync("tar", ["-C", root, "--keep-directory-symlink", "-xf", "-"], { input: archive });
  for (const name of ["passwd", "group"]) cpSync(`/usr/share/base-passwd/${name}.master`, join(root, "etc", name));
  cpSync(process.execPath, join(root, "usr/bin/node"));
  const npm = realpathSync(execFileSync("npm", ["root", "--global"]).toString().trim());
  cpSync(join(npm, "npm"), join(root, "usr/lib/node_modules/npm"), { recursive: true, verbatimSymlinks: true });
  for (const name of ["npm", "npx"]) symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, "usr/bin", name));
  for (const file of NETWORK_FILES) if (existsSync(file)) cpSync(file, join(root, file), { dereference: true });
}

/** The essential packages, with everything that they depend on. */
function packagesOf(dpkgQuery: string): string[] {
  // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query's own form.
  const fields = "${Package}\t${Essential}\t${Pre-Depends}, ${Depends}\n";
  const rows = execFileSync(dpkgQuery, ["-W", "-f", fields]).toString().trimEnd().split("\n");
  const dependencies = new Map<string, string[]>();
  const wanted = [...FOR_NODE];
  for (const row of rows) {
    const [name, essential, depends] = row.split("\t") as [string, string, string];
    // `a (>= 1) | b:any, c`
    const names = depends.split(/[,|]/).map((text) => text.trim().split(/[\s:(]/)[0]!);
    dependencies.set(name, names);
    if (essential === "yes") wanted.push(name);
  }
  const found = new Set<string>();
  for (let name = wanted.pop(); name !== undefined; name = wanted.pop()) {
    const more = dependencies.get(name);
    if (more === undefined || found.has(name)) continue; // virtual, not installed, or already found
    found.add(name);
    wanted.push(...more);
  }
  return [...found];
}

function filesOf(dpkgQuery: string, packages: readonly string[]): string[] {
  const listed = execFileSync(dpkgQuery, ["-L", ...packages], { maxBuffer: 2 ** 26 })
    .toString()
    .split("\n");
  return [...new Set(listed)].filter((file) => /^\/./.test(file) && !NOT_COPIED.test(file) && lstatSync(file, { throwIfNoEntry: false }));
}

/** How packages are reached from here: of the environment and of the user's npm. */
export function npmEnvironment(root: string): Record<string, string> {
  const taken = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];
  const registry = execFileSync("npm", ["config", "get", "registry"]).toString().trim();
  const environment: Record<string, string> = { npm_config_registry: registry, npm_config_prefer_offline: "true" };
  for (const name of taken) if (process.env[name] !== undefined) environment[name] = process.env[name];
  const certificates = process.env.NODE_EXTRA_CA_CERTS;
  if (certificates !== undefined && existsSync(certificates)) {
    cpSync(certificates, join(root, "etc/extra-certificates.pem"), { dereference: true });
    environment.NODE_EXTRA_CA_CERTS = "/etc/extra-certificates.pem";
  }
  return environment;
}

/** This machine's cache of packages. */
export const npmCache = (): string => execFileSync("npm", ["config", "get", "cache"]).toString().trim();

/** The lines of a file without comments and empty lines. */
export function linesOf(file: string): string[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "" && !line.startsWith("#"));
}
