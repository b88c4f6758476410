/** Text files in UTF-8 and in other encodings: what is read is what they hold, and what is not text is refused with its place. */
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SourceFiles, utf8Chunks } from "../../src/cli/import/source-files.ts";
import type { Encoding } from "../../src/cli/import/text-encoding.ts";

let directory: string;
let made = 0;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "lodestone-source-files-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const write = (bytes: Uint8Array | string): string => {
  const path = join(directory, `${++made}.csv`);
  writeFileSync(path, bytes);
  return path;
};
const sourceFiles = (encoding?: Encoding): SourceFiles => new SourceFiles(encoding, new AbortController().signal);
const read = async (bytes: Uint8Array | string, encoding?: Encoding): Promise<string> => {
  const files = sourceFiles(encoding);
  try {
    return readFileSync(await files.text(write(bytes)), "utf8");
  } finally {
    files.close();
  }
};

const CHUNK = 1 << 20;

describe("UTF-8", () => {
  test.each([
    ["é as latin1 has it", [0xe9], 0],
    ["é as latin1 has it, before ASCII", [0x61, 0xe9, 0x62, 0x63, 0x64], 1],
    ["a character that is cut off", [0x61, 0xe2, 0x82], 1],
    ["a lone continuation", [0xc3, 0xa9, 0xa9], 2],
    ["more bytes than needed", [0x61, 0xc0, 0xaf], 1],
    ["a surrogate", [0xed, 0xa0, 0x80], 0],
    ["beyond Unicode", [0x62, 0xf4, 0x90, 0x80, 0x80], 1],
  ])("%s is refused with its line and byte, wherever a chunk ends", async (_, tail, at) => {
    for (const before of [0, 1, 2, 3, 4, 5].map((back) => CHUNK - back)) {
      const head = Buffer.alloc(before, "a");
      head[7] = 0x0a;
      const path = write(Buffer.concat([head, Buffer.from(tail)]));
      await expect(sourceFiles().text(path)).rejects.toThrow(
        `${path}, line 2, byte ${(before + at).toLocaleString("en-US")}: 0x${tail[at]!.toString(16)} is not text in UTF-8. If the file is in another encoding, name it with --encoding`,
      );
    }
  });

  test("any text passes, in chunks of whole characters, from any place", async () => {
    const text = fc.sample(fc.string({ unit: "binary", minLength: 300_000, maxLength: 600_000 }), { numRuns: 3, seed: 5 });
    for (const expected of text) {
      const bytes = Buffer.from(expected);
      const path = write(bytes);
      expect(await sourceFiles().text(path)).toBe(path);
      const parts: string[] = [];
      for await (const chunk of utf8Chunks(path)) parts.push(chunk.toString("utf8"));
      expect(parts.join("") === expected).toBe(true);
    }
    const path = write("aé日b");
    for await (const chunk of utf8Chunks(path, 1, 6)) expect(chunk.toString("utf8")).toBe("é日");
  });
});

describe("another encoding", () => {
  test("latin1 is ISO 8859-1, byte for byte", async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
    expect(await read(bytes, "latin1")).toBe(String.fromCodePoint(...bytes));
  });

  test("windows-1252 has its own characters, and five bytes that are none", async () => {
    const undefinedBytes = [0x81, 0x8d, 0x8f, 0x90, 0x9d];
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => i).filter((byte) => !undefinedBytes.includes(byte));
    const others = [...Array(0x80).keys(), ...Array.from({ length: 0x60 }, (_, i) => 0xa0 + i)];
    const own = "€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ";
    expect(await read(bytes, "windows-1252")).toBe(
      String.fromCodePoint(...others.slice(0, 0x80)) + own + String.fromCodePoint(...others.slice(0x80)),
    );
    for (const byte of undefinedBytes) {
      await expect(read(Uint8Array.of(0x61, 0x0a, 0x62, byte), "windows-1252")).rejects.toThrow(
        `line 2, byte 3: 0x${byte.toString(16)} is not text in WINDOWS-1252.`,
      );
    }
  });

  test.each(["utf-16le", "utf-16be"] as const)("%s is recognised by its mark, which is left out", async (encoding) => {
    const text = `ab\n${"é日".repeat(CHUNK / 4)}\u{1f600}${"x".repeat(CHUNK / 2)}`;
    const encoded = (value: string): Buffer => {
      const bytes = Buffer.from(value, "utf16le");
      return encoding === "utf-16le" ? bytes : bytes.swap16();
    };
    for (const asked of [undefined, "utf-16", encoding] as const) expect((await read(encoded(`\ufeff${text}`), asked)) === text).toBe(true);
    expect((await read(encoded(text), encoding)) === text).toBe(true);
    // A pair over the border of two chunks.
    const pairs = "\u{1f600}".repeat(CHUNK / 2);
    expect((await read(encoded(`x${pairs}`), encoding)) === `x${pairs}`).toBe(true);
    await expect(read(encoded(text), "utf-16")).rejects.toThrow("has no mark that says its byte order");
    await expect(read(encoded("\ufeffa\nb\udc00c"), undefined)).rejects.toThrow("line 2, byte 8: 0x");
    await expect(read(encoded("\ufeffa\nb\ud83d"), undefined)).rejects.toThrow("line 2, byte 8: 0x");
    await expect(read(Buffer.concat([encoded("\ufeffa"), Buffer.of(0x61)]), undefined)).rejects.toThrow("line 1, byte 4: 0x61 is not text");
  });

  test("that the file's mark contradicts is refused", async () => {
    await expect(read("\ufeffid\n", "latin1")).rejects.toThrow("--encoding latin1: ");
    expect(await read("\ufeffid\n", "utf-8")).toBe("\ufeffid\n");
  });

  test("is converted once, in a folder that nobody else may enter, which is removed", async () => {
    const files = sourceFiles("latin1");
    const path = write(Uint8Array.of(0xe9));
    const [first, second] = await Promise.all([files.text(path), files.text(path)]);
    expect(second).toBe(first);
    expect(dirname(first)).not.toBe(directory);
    expect(statSync(dirname(first)).mode & 0o777).toBe(0o700);
    expect(statSync(first).mode & 0o777).toBe(0o600);
    files.close();
    expect(statSync(dirname(first), { throwIfNoEntry: false })).toBeUndefined();
  });

  test.each([undefined, "latin1"] as const)("reading stops when it is told to (%s)", async (encoding) => {
    const controller = new AbortController();
    const files = new SourceFiles(encoding, controller.signal);
    controller.abort();
    await expect(files.text(write("a"))).rejects.toBe(controller.signal.reason);
    files.close();
  });
});
