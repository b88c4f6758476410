/** What earlier releases wrote, and these releases themselves: see test/fixtures/releases/README.md. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliDecompressSync, constants } from "node:zlib";

const FIXTURES = fileURLToPath(new URL("../fixtures/releases/", import.meta.url));
const NODE_MODULES = fileURLToPath(new URL("../../node_modules", import.meta.url));

export const RELEASES = readdirSync(FIXTURES).flatMap((name) => /^(\w+)\.tar\.br$/.exec(name)?.[1] ?? []);

export interface Release {
  readonly commit: string;
  readonly folder: string;
  /** The program's main file, which can be run. */
  readonly main: string;
  readonly keys: { readonly writer: string; readonly owner: string };
  remove(): void;
}

export function unpackRelease(commit: string): Release {
  const folder = mkdtempSync(join(tmpdir(), "lodestone-release-"));
  const params = { [constants.BROTLI_DECODER_PARAM_LARGE_WINDOW]: 1 };
  const archive = brotliDecompressSync(readFileSync(join(FIXTURES, `${commit}.tar.br`)), { params });
  execFileSync("tar", ["x", "--no-same-owner", "-C", folder], { input: archive });
  symlinkSync(NODE_MODULES, join(folder, "node_modules"));
  return {
    commit,
    folder,
    main: join(folder, "program", "dist", "cli", "main.js"),
    keys: JSON.parse(readFileSync(join(folder, "keys-in-clear.json"), "utf8")) as Release["keys"],
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

const ROWS = 1_500;

/** What scripts/release-fixture.mjs wrote. */
const writtenItem = (i: number) => ({
  id: `i${i}`,
  v: [(i * 7) % 23, (i * 11) % 29, 1 + (i % 5), ((i * 3) % 17) / 4],
  title: `title ${i % 40}${i % 7 === 0 ? " été \u{1f4a0}" : ""}`,
  count: i === 3 ? 3 * 1_000_003 + 5 : i * 1_000_003,
  price: i / 7,
  done: i % 3 === 0,
  at: new Date(1_700_000_000_000 + i * 86_400_000).toISOString(),
  tags: ["a", `t${i % 9}`],
  config: { level: i % 4, nested: { list: [i, null, "x"] } },
  // Fields without a value are not answered.
  ...(i % 2 === 0 ? { other: { id: `o${i % 3}` } } : {}),
});

export const WRITTEN = Array.from({ length: ROWS }, (_, i) => writtenItem(i)).filter(({ id }) => id !== "i4");
