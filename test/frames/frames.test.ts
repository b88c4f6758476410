/** Frames in pieces as connections cut them. */
import { expect, it } from "vitest";
import { encodeFrame, FrameReader, type RecordsFrame } from "../../src/frames/frames.ts";

const records = (n: number): RecordsFrame => ({ type: "records", ids: Array.from({ length: n }, (_, i) => `r${i}`), values: [null] });
const vectors = (n: number): Float32Array => Float32Array.from({ length: n }, (_, i) => Math.sin(i));
const FRAMES = [
  encodeFrame(records(0)),
  encodeFrame(records(3), [vectors(7)]),
  encodeFrame({ type: "alive" }),
  encodeFrame(records(40), [vectors(300), vectors(2)]),
  encodeFrame({ type: "position", at: "1~2:3:" }),
];
const BYTES = Buffer.concat(FRAMES);

it.each([1, 2, 3, 5, 7, 8, 9, 64, 100, 1000, BYTES.length])("in pieces of %i bytes they are what they were", (size) => {
  const reader = new FrameReader();
  const read = [];
  for (let at = 0; at < BYTES.length; at += size) read.push(...reader.read(BYTES.subarray(at, at + size)));
  expect(reader.pendingBytes).toBe(0);
  expect(read.map(({ frame, vectors: own }) => encodeFrame(frame, [own]))).toEqual(FRAMES);
  expect(read.map(({ bytes }) => bytes)).toEqual(FRAMES.map(({ length }) => length));
});

it("a frame that is cut off is pending, and one that is too long is refused as soon as its beginning is there", () => {
  const reader = new FrameReader();
  expect([...reader.read(FRAMES[1]!.subarray(0, -1))]).toEqual([]);
  expect(reader.pendingBytes).toBe(FRAMES[1]!.length - 1);
  expect(() => [...new FrameReader().read(Buffer.alloc(8, 0xff))]).toThrow(RangeError);
});

it("a frame's vectors are of a buffer of their own, which can be transferred, and not of the piece that they came in", () => {
  const piece = Uint8Array.from(BYTES);
  const read = [...new FrameReader().read(piece)];
  expect(new Set(read.map(({ vectors: own }) => own.buffer)).size).toBe(FRAMES.length);
  piece.fill(0);
  const [first, second] = [read[1]!.vectors, read[3]!.vectors];
  expect(structuredClone(first, { transfer: [first.buffer] })).toEqual(vectors(7));
  expect(first.length).toBe(0);
  expect(second).toEqual(Float32Array.from([...vectors(300), ...vectors(2)]));
});

it("frames before one that is damaged are read, and a head of another length than a multiple of 4 is none", () => {
  const damaged = Uint8Array.from(FRAMES[1]!);
  damaged[0]! -= 1;
  const read: string[] = [];
  const readAll = (): void => {
    for (const { frame } of new FrameReader().read(Buffer.concat([FRAMES[2]!, damaged]))) read.push(frame.type);
  };
  expect(readAll).toThrow(RangeError);
  expect(read).toEqual(["alive"]);
});
