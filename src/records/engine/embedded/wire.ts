/** The stream that the `pg` client takes for a socket: a Duplex over the worker's message port. */
import { Duplex } from "node:stream";
import type { Worker } from "node:worker_threads";

/**
 * `unread` is what the worker has sent and the client has not taken yet; the worker waits while it is too much (messages.ts).
 * The client reads in flowing mode, so the count falls as messages are taken from the port, and stands still while the client pauses the stream.
 */
export function wireTo(worker: Worker, unread: Int32Array, onWrite: (bytes: number) => void, onRead: (bytes: Uint8Array) => void): Duplex {
  let owed = 0;
  const settle = (): void => {
    if (owed === 0) return;
    Atomics.sub(unread, 0, owed);
    owed = 0;
    Atomics.notify(unread, 0);
  };
  const duplex = new Duplex({
    read: settle,
    write(chunk: Buffer, _encoding, done) {
      onWrite(chunk.length);
      worker.postMessage(new Uint8Array(chunk));
      done();
    },
    writev(chunks, done) {
      const joined = Buffer.concat(chunks.map(({ chunk }) => chunk as Buffer));
      onWrite(joined.length);
      worker.postMessage(new Uint8Array(joined));
      done();
    },
  });
  worker.on("message", (message: unknown) => {
    if (!(message instanceof Uint8Array)) return;
    owed += message.length;
    onRead(message);
    if (duplex.push(Buffer.from(message.buffer, message.byteOffset, message.byteLength))) settle();
  });
  // What `pg` calls on a socket and a message port has no need of.
  return Object.assign(duplex, {
    connect: () => process.nextTick(() => duplex.emit("connect")),
    setNoDelay: () => duplex,
    setKeepAlive: () => duplex,
    ref: () => duplex,
    unref: () => duplex,
  });
}
