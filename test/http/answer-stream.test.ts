import { expect, it } from "vitest";
import { streamToReader } from "../../src/http/answer-stream.ts";
import { ExactJson } from "../../src/records/exact-json.ts";
import { jsonPieces } from "../../src/records/json-pieces.ts";
import { turnsDuring } from "../support/event-loop.ts";

const socket = { destroy: () => socket } as never;

it("a large response is made in slices, even for a reader who takes everything at once", async () => {
  const value = { records: Array.from({ length: 100_000 }, (_, id) => ({ id, text: `record number ${id}` })) };
  const text = JSON.stringify(value);
  let taken = "";
  const turns = await turnsDuring(async () => {
    for await (const piece of streamToReader(jsonPieces(value), socket, 60_000)) taken += piece;
  });
  expect(taken).toBe(text);
  expect(turns).toBeGreaterThan(Math.floor(text.length / (512 * 1024)));
});

it("a fault in the middle of a response ends it", async () => {
  const fault = new Error("cannot be written");
  const parts = (function* () {
    yield "x".repeat(600_000);
    yield "y".repeat(600_000);
    throw fault;
  })();
  await expect(
    (async () => {
      for await (const _ of streamToReader(parts, socket, 60_000));
    })(),
  ).rejects.toBe(fault);
});

it("one long text, and long JSON that is returned as it is, come in pieces too", () => {
  const text = `${'a\n"ü😀'.repeat(50_000)}\ud800`;
  const exact = `[${"12345678901234567890,".repeat(20_000)}"😀"]`;
  const pieces = [...jsonPieces({ text, exact: new ExactJson(exact) })];
  expect(pieces.join("")).toBe(`{"text":${JSON.stringify(text)},"exact":${exact}}`);
  expect(Math.max(...pieces.map((piece) => piece.length))).toBeLessThan(256 * 1024);
});

it("a deep value is not looked at again and again", () => {
  let looks = 0;
  let value: object = {};
  const depth = 6_000;
  for (let i = 0; i < depth; i++) {
    const inner = value;
    value = {
      get a() {
        looks++;
        return inner;
      },
    };
  }
  const text = [...jsonPieces(value)].join("");
  expect(text).toBe(`${'{"a":'.repeat(depth)}{}${"}".repeat(depth)}`);
  expect(looks).toBeLessThan(100 * depth);
});
