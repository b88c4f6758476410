/** The stream that the `pg` client takes for a socket: a Duplex over the worker's message port. */
import { Duplex } from "node:stream";
import type { Worker } from "node:worker_threads";
import { yieldWhileHolding } from "../../../threads/event-loop.ts";
import { joinedBytes } from "./worker-messages.ts";

/**
 * Bytes passed on in one turn of the event loop: a few milliseconds of reading messages and making values.
 */
const TURN_BYTES = 512 * 1024;

/**
 * What is written is copied, and the copy is handed over to the worker: values belong to the caller, whose unit of work sends them
 * again when it was preempted.
 *
 * `unread` counts what the worker has sent and the client has not taken yet; the worker waits while it is too
 * much (worker-messages.ts). The client reads in flowing mode, so the count falls as messages are passed on,
 * and stays while the client pauses the stream. A large batch is passed on over several turns of the event
 * loop, so that others are served in between. Long work of others waits meanwhile: nobody else has the session.
 */
export function wireTo(worker: Worker, unread: Int32Array, onWrite: (bytes: number) => void, onRead: (bytes: Uint8Array) => void): Duplex {
  let owed = 0;
  const settle = (): void => {
    if (owed === 0) return;
    Atomics.sub(unread, 0, owed);
    owed = 0;
    Atomics.notify(unread, 0);
  };
  const send = (bytes: Uint8Array<ArrayBuffer>): void => {
    onWrite(bytes.length);
    worker.postMessage(bytes, [bytes.buffer]);
  };
  const duplex = new Duplex({
    read: settle,
    write(chunk: Buffer, _encoding, done) {
      send(new Uint8Array(chunk));
      done();
    },
    writev(chunks, done) {
      send(joinedBytes((chunks as { chunk: Buffer }[]).map(({ chunk }) => chunk)));
      done();
    },
  });
  const arrived: Uint8Array[] = [];
  let left = TURN_BYTES;
  let isWaiting = false;
  const passOn = (): void => {
    isWaiting = false;
    for (let message = arrived.shift(); message !== undefined; message = arrived.shift()) {
      const bytes = message.subarray(0, left);
      if (bytes.length < message.length) arrived.unshift(message.subarray(left));
      left -= bytes.length;
      owed += bytes.length;
      onRead(bytes);
      if (duplex.push(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))) settle();
      if (left > 0) continue;
      left = TURN_BYTES;
      isWaiting = true;
      void yieldWhileHolding().then(passOn);
      return;
    }
  };
  worker.on("message", (message: unknown) => {
    if (!(message instanceof Uint8Array)) return;
    arrived.push(message);
    if (!isWaiting) passOn();
  });
  // Methods that `pg` calls on a socket, and that a message port does not need.
  return Object.assign(duplex, {
    connect: () => process.nextTick(() => duplex.emit("connect")),
    setNoDelay: () => duplex,
    setKeepAlive: () => duplex,
    ref: () => duplex,
    unref: () => duplex,
  });
}
