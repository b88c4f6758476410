/** A large result of the embedded database is passed on over several turns of the event loop. */
import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import { expect, it } from "vitest";
import { wireTo } from "../../../src/records/engine/embedded/wire.ts";

const MIB = 2 ** 20;

it("passes on half a MiB per turn, in order, and tells the thread when it is taken", async () => {
  const worker = Object.assign(new EventEmitter(), { postMessage: () => {} });
  const unread = new Int32Array(new SharedArrayBuffer(4));
  let passedOn = 0;
  const duplex = wireTo(
    worker as unknown as Worker,
    unread,
    () => {},
    (bytes) => {
      passedOn += bytes.length;
    },
  );
  const received: Buffer[] = [];
  duplex.on("data", (chunk: Buffer) => received.push(chunk));
  const sent = [3 * MIB, 10, 2 * MIB + 1].map((length, i) => new Uint8Array(length).fill(i + 1));
  for (const bytes of sent) {
    Atomics.add(unread, 0, bytes.length);
    worker.emit("message", bytes);
  }
  const most: number[] = [];
  for (let before = 0; passedOn < 5 * MIB + 11; before = passedOn) {
    most.push(passedOn - before);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await new Promise((resolve) => setImmediate(resolve));
  expect(Math.max(...most)).toBeLessThanOrEqual(MIB / 2);
  expect(Buffer.concat(received).equals(Buffer.concat(sent))).toBe(true);
  expect(Atomics.load(unread, 0)).toBe(0);
});

it("hands copies over to the thread, in order, and leaves what was written to its owner", async () => {
  const received: Uint8Array[] = [];
  const postMessage = (bytes: Uint8Array, transfer: ArrayBuffer[]): void => {
    received.push(structuredClone(bytes, { transfer }));
  };
  let written = 0;
  const duplex = wireTo(
    Object.assign(new EventEmitter(), { postMessage }) as unknown as Worker,
    new Int32Array(new SharedArrayBuffer(4)),
    (bytes) => {
      written += bytes;
    },
    () => {},
  );
  const short = (text: string): Buffer => Buffer.from(text); // of Node's pool
  const [together, alone] = [Buffer.alloc(MIB, 1), Buffer.alloc(MIB, 2)];
  duplex.cork();
  for (const chunk of [short("a"), short("b"), together, short("c")]) duplex.write(chunk);
  duplex.uncork();
  duplex.write(alone);
  await new Promise((resolve) => duplex.end(resolve));
  expect([together.length, alone.length]).toEqual([MIB, MIB]);
  expect(Buffer.concat(received).equals(Buffer.concat([short("ab"), Buffer.alloc(MIB, 1), short("c"), Buffer.alloc(MIB, 2)]))).toBe(true);
  expect(written).toBe(2 * MIB + 3);
});
