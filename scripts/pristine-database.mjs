/**
 * Makes the database with which every new data directory begins, and packs it into one file of dist/. initdb takes
 * seconds and most of a gigabyte, so it runs here, once per build, and a first start only unpacks its result.
 * The file's format stands in src/records/engine/embedded/pristine-database.ts.
 *
 * usage: node scripts/pristine-database.mjs, which scripts/build.mjs runs: this process changes its own clock and
 * its own random numbers, so that the same sources give the same bytes.
 */
import nodeCrypto, { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { brotliCompressSync, constants } from "node:zlib";
import { PGlite } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";

/**
 * No user role may make temporary tables or look into `public`: the second wall of SQL over HTTP begins here.
 * Nothing makes databases from the templates, which are two thirds of the files, and nothing would freeze their old
 * transaction numbers. The log of all this is left behind: the checkpoint removes its file, and what follows fits in
 * the first pages of the next.
 */
const SETUP = [
  "REVOKE ALL ON DATABASE postgres FROM PUBLIC",
  "REVOKE ALL ON SCHEMA public FROM PUBLIC",
  "UPDATE pg_database SET datistemplate = false, datallowconn = true WHERE datname IN ('template0', 'template1')",
  "DROP DATABASE template0",
  "DROP DATABASE template1",
  "SET wal_recycle = off",
  "SELECT pg_switch_wal()",
  "CHECKPOINT",
];
/** Higher ones take up to four times as long, in each `npm ci`, for a fortieth of the size. */
const QUALITY = 5;
const WINDOW_BITS = 24;

const root = fileURLToPath(new URL("..", import.meta.url));
const stamp = stampOf("node_modules/@electric-sql/pglite/package.json", "scripts/pristine-database.mjs");
const target = `${root}dist/records/engine/embedded/pristine-database.br`;
const stampFile = `${target}.stamp`;

if (!existsSync(target) || !existsSync(stampFile) || readFileSync(stampFile, "utf8") !== stamp) {
  rmSync(stampFile, { force: true });
  const folder = mkdtempSync(join(tmpdir(), "lodestone-pristine-"));
  try {
    await makeDatabase(folder);
    writeFileSync(target, pack(folder));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  writeFileSync(stampFile, stamp);
}

/** Each start gives its directory an identity of its own, so nothing needs what is fixed here. */
async function makeDatabase(folder) {
  // initdb runs for a few seconds: optimising PostgreSQL's WebAssembly for it takes longer than that saves.
  setFlagsFromString("--liftoff-only");
  const builtAt = Date.UTC(2026, 0, 1);
  Date.now = () => builtAt;
  nodeCrypto.randomFillSync = (array) => array.fill(0);
  const database = await PGlite.create({ fs: new NodeFS(folder) });
  for (const statement of SETUP) await database.exec(statement);
  await database.close();
}

/** Equal files are stored once, and no file's last zeros are stored. */
function pack(folder) {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    .map((entry) => ({ entry, path: join(entry.parentPath, entry.name) }))
    .toSorted((a, b) => (a.path < b.path ? -1 : 1));
  const named = (path) => path.slice(folder.length + 1).replaceAll(sep, "/");
  const directories = entries.filter(({ entry }) => entry.isDirectory()).map(({ path }) => named(path));
  const stored = new Map();
  const contents = [];
  let at = 0;
  const files = entries
    .filter(({ entry }) => entry.isFile())
    .map(({ path }) => {
      const bytes = readFileSync(path);
      const content = bytes.subarray(0, bytes.findLastIndex((byte) => byte !== 0) + 1);
      const hash = createHash("sha256").update(content).digest("hex");
      if (!stored.has(hash)) {
        stored.set(hash, at);
        contents.push(content);
        at += content.length;
      }
      return { path: named(path), size: bytes.length, at: stored.get(hash), length: content.length };
    });
  const index = Buffer.from(JSON.stringify({ directories, files }));
  const indexLength = Buffer.alloc(4);
  indexLength.writeUInt32LE(index.length);
  const whole = Buffer.concat([indexLength, index, ...contents]);
  return brotliCompressSync(whole, {
    params: {
      [constants.BROTLI_PARAM_QUALITY]: QUALITY,
      [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS,
      [constants.BROTLI_PARAM_SIZE_HINT]: whole.length,
    },
  });
}

function stampOf(...files) {
  const hash = createHash("sha256");
  for (const file of files) hash.update(readFileSync(root + file)).update("\0");
  return hash.digest("hex");
}
