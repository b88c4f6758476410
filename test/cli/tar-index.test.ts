/** Archives whose headers say what cannot be: each is refused, and none is read for ever. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { readTarIndex } from "../../src/cli/import/dump/tar-index.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "lodestone-tar-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const index = (...blocks: Uint8Array[]) => {
  const path = join(directory, "dump.tar");
  writeFileSync(path, Buffer.concat(blocks));
  return readTarIndex(path, new AbortController().signal);
};
const END = Buffer.alloc(1024);
const CONTENTS = Buffer.alloc(512, "x");

interface Fields {
  readonly name?: string;
  readonly size?: string | Uint8Array;
  readonly type?: string;
  readonly checksum?: string;
}

function header({ name = "1.dat", size = "00000000003\0", type = "0", checksum }: Fields): Buffer {
  const bytes = Buffer.alloc(512);
  bytes.write(name, 0, "latin1");
  if (typeof size === "string") bytes.write(size, 124, "latin1");
  else bytes.set(size, 124);
  bytes.write(type, 156, "latin1");
  bytes.fill(" ", 148, 156);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(checksum ?? `${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return bytes;
}

const base256 = (...tail: number[]): Uint8Array =>
  Uint8Array.from([...Array(12 - tail.length).fill(0), ...tail], (byte, i) => (i === 0 ? 0x80 : byte));

describe("the index of a tar archive", () => {
  test("has the files, with sizes in octal digits and as numbers, and nothing else", async () => {
    const found = await index(
      header({ name: "folder/", size: "00000000000\0", type: "5" }),
      header({ name: "a", size: "00000000003\0" }),
      CONTENTS,
      header({ name: "b", size: "    1000    " }),
      CONTENTS,
      header({ name: "c", size: base256(2, 0) }),
      CONTENTS,
      END,
    );
    expect([...found]).toEqual([
      ["a", { offset: 1024, size: 3 }],
      ["b", { offset: 2048, size: 512 }],
      ["c", { offset: 3072, size: 512 }],
    ]);
  });

  test.each<[string, Fields]>([
    ["negative, in digits", { size: "-0000001000\0" }],
    ["negative, as a number", { size: Buffer.from(`${"ff".repeat(10)}fc00`, "hex") }],
    ["a number with a fraction", { size: "0000001.000\0" }],
    ["no number", { size: "abc\0" }],
    ["a number of decimal digits", { size: "00000000009\0" }],
    ["a number in front of something else", { size: "3 or more\0" }],
    ["beyond 2^64, as a number", { size: Uint8Array.from([0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]) }],
  ])("refuses a size that is %s", async (_, fields) => {
    await expect(index(header(fields), CONTENTS, END)).rejects.toThrow("byte 0: the member's size is not a number of bytes");
    await expect(index(header({}), CONTENTS, header({ ...fields, name: "b" }), CONTENTS, END)).rejects.toThrow(
      "byte 1024: the member's size",
    );
  });

  test.each<[string, Fields]>([
    ["in digits", { size: "77777777777\0" }],
    ["as a number", { size: base256(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff) }],
    ["by one block", { size: "00000002001\0" }],
  ])("refuses a size that reaches beyond the file, %s", async (_, fields) => {
    await expect(index(header(fields), CONTENTS, END.subarray(0, 512))).rejects.toThrow("byte 0: the archive ends within this member");
  });

  test("refuses archives that are cut off anywhere, have wrong checksums, or a name twice", async () => {
    const whole = Buffer.concat([header({}), CONTENTS, header({ name: "b" }), CONTENTS]);
    for (const length of [511, 512, 700, 1024, 1300, 1536, 2048]) {
      await expect(index(whole.subarray(0, length)), `${length}`).rejects.toThrow(/cut off/);
    }
    for (const checksum of ["", "garbage", "-000001\0", "777777\0 "]) {
      await expect(index(header({ checksum }), CONTENTS, END)).rejects.toThrow("byte 0: is not a tar header");
    }
    await expect(index(header({}), CONTENTS, header({}), CONTENTS, END)).rejects.toThrow(
      "byte 1024: the archive has two members of this name",
    );
  });

  test("stops when it is told to", async () => {
    const controller = new AbortController();
    controller.abort();
    const path = join(directory, "stopped.tar");
    writeFileSync(path, Buffer.concat([header({}), CONTENTS, END]));
    await expect(readTarIndex(path, controller.signal)).rejects.toBe(controller.signal.reason);
  });
});
