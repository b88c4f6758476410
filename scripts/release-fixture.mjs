/**
 * Makes the fixture of one release: `node scripts/release-fixture.mjs <commit> <folder of PostgreSQL's programs>`. It
 * builds the commit in a temporary folder, writes with it into an embedded and a PostgreSQL database, and packs what
 * that left, with the program itself, into test/fixtures/releases/<commit>.tar.br. The tests open what is packed
 * (test/reliability/releases.test.ts); nobody else needs the history. Takes minutes.
 */
import { execFileSync, spawn } from "node:child_process";
import { chownSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants } from "node:zlib";

const root = fileURLToPath(new URL("..", import.meta.url));
const [commit, postgresBin] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), "lodestone-release-"));
const at = (...path) => join(work, ...path);
const run = (command, args, options = {}) =>
  execFileSync(command, args, { stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28, ...options });

/** Packages that the release used and this one does not; `node_modules` of the checkout has the others. */
const GONE = { "5f8d572": ["pg-copy-streams@7.0.0", "obuf@1.1.2"] };
const ROWS = 1_500;
const BRANCH = "/db/shop:main";

function build() {
  mkdirSync(at("source"));
  execFileSync("tar", ["x", "-C", at("source")], { input: run("git", ["archive", commit], { cwd: root }) });
  symlinkSync(join(root, "node_modules"), at("source", "node_modules"));
  const program = at("pack", "program");
  mkdirSync(program, { recursive: true });
  if (GONE[commit] !== undefined) {
    writeFileSync(at("package.json"), "{}");
    run("npm", ["install", "--no-audit", "--no-fund", "--no-package-lock", ...GONE[commit]], { cwd: work });
    cpSync(at("node_modules"), join(program, "node_modules"), {
      recursive: true,
      filter: (path) => !/\/(\.package-lock\.json|test|\.bin)$/.test(path),
    });
  }
  run(process.execPath, ["scripts/build.mjs"], { cwd: at("source") });
  const isProgram = (path) => !/\/dist\/(packages|console|browser)|\.(d\.ts|map)$/.test(path);
  cpSync(at("source", "dist"), join(program, "dist"), { recursive: true, filter: isProgram });
  cpSync(at("source", "package.json"), join(program, "package.json"));
  symlinkSync(join(root, "node_modules"), at("pack", "node_modules"));
}

const cli = at("pack", "program", "dist", "cli", "main.js");

async function serve(args) {
  const child = spawn(process.execPath, [cli, "serve", "--port", "0", "--snapshot-interval", "1", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const found = /listens on (http:\/\/\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
    child.once("exit", (code) => reject(new Error(`ended with ${code}`)));
  });
  const call = async (method, path, body, key) => {
    const headers = { "content-type": "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) };
    const answer = await fetch(url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
    const json = await answer.json().catch(() => null);
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(json)}`);
    return json;
  };
  const stop = () =>
    new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill("SIGTERM");
    });
  return { url, call, stop };
}

const item = (i) => ({
  id: `i${i}`,
  v: [(i * 7) % 23, (i * 11) % 29, 1 + (i % 5), ((i * 3) % 17) / 4],
  title: `title ${i % 40}${i % 7 === 0 ? " été \u{1f4a0}" : ""}`,
  count: i * 1_000_003,
  price: i / 7,
  done: i % 3 === 0,
  at: new Date(1_700_000_000_000 + i * 86_400_000).toISOString(),
  tags: ["a", `t${i % 9}`],
  config: { level: i % 4, nested: { list: [i, null, "x"] } },
  other: i % 2 === 0 ? `o${i % 3}` : null,
});

async function write({ call }, key) {
  await call("PUT", BRANCH, undefined, key);
  await call("PUT", `${BRANCH}/tables/others`, undefined, key);
  await call("PUT", `${BRANCH}/tables/others/schema`, { columns: [{ name: "name", type: "string" }] }, key);
  await call("PUT", `${BRANCH}/tables/items`, undefined, key);
  const columns = ["title string", "count int", "price float", "done bool", "at datetime", "tags multiple", "config json"].map((text) => {
    const [name, type] = text.split(" ");
    return { name, type };
  });
  columns.push({ name: "v", type: "vector", vector: { dimension: 4 } }, { name: "other", type: "link", link: { table: "others" } });
  await call("PUT", `${BRANCH}/tables/items/schema`, { columns }, key);
  await call("POST", `${BRANCH}/tables/others/bulk`, { records: [0, 1, 2].map((i) => ({ id: `o${i}`, name: `other ${i}` })) }, key);
  for (let from = 0; from < ROWS; from += 500)
    await call("POST", `${BRANCH}/tables/items/bulk`, { records: Array.from({ length: 500 }, (_, i) => item(from + i)) }, key);
  await call("PATCH", `${BRANCH}/tables/items/data/i3`, { count: { $increment: 5 } }, key);
  await call("DELETE", `${BRANCH}/tables/items/data/i4`, undefined, key);
  await call(
    "POST",
    `${BRANCH}/transaction`,
    { operations: [{ insert: { table: "others", record: { id: "o9", name: "by a transaction" } } }] },
    key,
  );
  await call("POST", `${BRANCH}/sql`, { statement: `UPDATE "others" SET "name" = 'by SQL' WHERE "id" = 'o2'` }, key);
  await call("PUT", "/db/shop:copy", { from: "main" }, key);
  await call("POST", "/db/shop:copy/tables/items/columns", { name: "added", type: "int" }, key);
}

/** Waits until the search store has a snapshot on disk, which a stop then leaves. */
async function ready({ call }) {
  for (;;) {
    const { status } = await call("GET", "/readyz").catch(() => ({}));
    if (status === "ready") return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function embedded() {
  const dataDir = at("pack", "data");
  const keyFile = at("pack", "keys.json");
  const made = run(process.execPath, [cli, "keys", "create", "writer", "--scope", "write", "--file", keyFile], { encoding: "utf8" });
  const admin = run(process.execPath, [cli, "keys", "create", "owner", "--scope", "admin", "--file", keyFile], { encoding: "utf8" });
  const keyOf = (text) => /lodestone_\S+|[A-Za-z0-9_-]{24,}/.exec(text)[0];
  writeFileSync(at("pack", "keys-in-clear.json"), JSON.stringify({ writer: keyOf(made), owner: keyOf(admin) }));
  const key = keyOf(admin);
  const server = await serve(["--data-dir", dataDir, "--key-file", keyFile]);
  await write(server, key);
  await ready(server);
  const backup = await server.call("POST", "/backups", {}, key);
  console.log("backup", backup);
  await server.stop();
}

async function onPostgres() {
  const directory = at("postgres");
  mkdirSync(directory);
  const user = process.getuid() === 0 ? { uid: Number(run("id", ["-u", "postgres"])), gid: Number(run("id", ["-g", "postgres"])) } : {};
  if (user.uid !== undefined) {
    execFileSync("chmod", ["755", work]);
    chownSync(directory, user.uid, user.gid);
  }
  const pg = (name, args, options = {}) => run(join(postgresBin, name), args, { cwd: directory, ...user, ...options });
  pg("initdb", ["-D", join(directory, "data"), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C.UTF-8"]);
  const port = "54999";
  pg(
    "pg_ctl",
    [
      "-D",
      join(directory, "data"),
      "-w",
      "-o",
      `-p ${port} -k ${directory} -c listen_addresses=127.0.0.1`,
      "-l",
      join(directory, "log"),
      "start",
    ],
    { stdio: "ignore" },
  );
  try {
    const url = `postgresql://postgres@127.0.0.1:${port}/postgres`;
    const server = await serve(["--database-url", url, "--data-dir", at("pack", "server-data")]);
    await write(server);
    await ready(server);
    await server.stop();
    writeFileSync(at("pack", "dump.sql"), pg("pg_dump", ["-h", "127.0.0.1", "-p", port, "-U", "postgres", "--no-owner", "postgres"]));
  } finally {
    pg("pg_ctl", ["-D", join(directory, "data"), "-m", "fast", "stop"], { stdio: "ignore" });
  }
}

build();
await embedded();
await onPostgres();
rmSync(at("pack", "node_modules"));
const packed = run("tar", ["c", "--sort=name", "--owner=0", "--group=0", "-C", at("pack"), "."]);
const { BROTLI_PARAM_LARGE_WINDOW, BROTLI_PARAM_LGWIN, BROTLI_PARAM_QUALITY, BROTLI_PARAM_SIZE_HINT } = constants;
const params = {
  [BROTLI_PARAM_LARGE_WINDOW]: 1,
  [BROTLI_PARAM_LGWIN]: 27,
  [BROTLI_PARAM_QUALITY]: 11,
  [BROTLI_PARAM_SIZE_HINT]: packed.length,
};
const target = join(root, "test", "fixtures", "releases", `${commit}.tar.br`);
mkdirSync(join(target, ".."), { recursive: true });
writeFileSync(target, brotliCompressSync(packed, { params }));
console.log(`${packed.length} bytes became ${readFileSync(target).length}: ${target}`);
rmSync(work, { recursive: true, force: true });
