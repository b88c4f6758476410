import { expect, it } from "vitest";
import { streamToReader } from "../../src/http/answer-stream.ts";
import { jsonPieces } from "../../src/http/json-pieces.ts";
import { turnsDuring } from "../support/event-loop.ts";

const socket = { destroy: () => socket } as never;

it("a large answer is made in slices, also for a reader who takes everything at once", async () => {
  const value = { records: Array.from({ length: 100_000 }, (_, id) => ({ id, text: `record number ${id}` })) };
  const text = JSON.stringify(value);
  let taken = "";
  const turns = await turnsDuring(async () => {
    for await (const piece of streamToReader(jsonPieces(value), socket, 60_000)) taken += piece;
  });
  expect(taken).toBe(text);
  expect(turns).toBeGreaterThan(Math.floor(text.length / (512 * 1024)));
});

it("a fault in the middle of an answer ends it", async () => {
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
