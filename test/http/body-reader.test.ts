import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { readBody } from "../../src/http/body/body-reader.ts";
import { DEFAULT_HTTP_LIMITS } from "../../src/http/http-limits.ts";
import { turnsDuring } from "../support/event-loop.ts";

/** A request that has arrived as a whole. */
const requestOf = (text: string): IncomingMessage =>
  Object.assign(Readable.from([Buffer.from(text)]), { headers: {} }) as unknown as IncomingMessage;

test.each(["é", "ж", "漢", "😀", "a😀"])(
  "a large body of %s is decoded in pieces, none of which ends within a character",
  async (character) => {
    for (let offset = 0; offset < 4; offset++) {
      const text = "x".repeat(offset) + character.repeat(1_200_000);
      expect((await readBody(requestOf(text), DEFAULT_HTTP_LIMITS)) === text).toBe(true);
    }
  },
);

test("a byte order mark is no part of the text", async () => {
  for (const text of ["x", "ж".repeat(300_000)])
    expect((await readBody(requestOf(`\ufeff${text}`), DEFAULT_HTTP_LIMITS)) === text).toBe(true);
});

test("others run while a large body is decoded", async () => {
  const text = "ж".repeat(8_000_000);
  const turns = await turnsDuring(() => readBody(requestOf(text), DEFAULT_HTTP_LIMITS));
  // Two pieces of a quarter of a megabyte are a slice, and a character has two bytes.
  expect(turns).toBeGreaterThan((2 * text.length) / 2 ** 19);
});
