/**
 * A large answer in slices, so that it can be seen whether its reader still takes it: a client that takes nothing for too long is cut off and frees what it held,
 * a slow one that goes on is served to the end.
 */
import type { Socket } from "node:net";
import { Readable } from "node:stream";

const SLICE_BYTES = 256 * 1024;

export function sliceForReader(bytes: Buffer, socket: Socket, idleTimeoutMs: number): Readable {
  let at = 0;
  const timer = setTimeout(() => socket.destroy(), idleTimeoutMs);
  timer.unref();
  return new Readable({
    highWaterMark: SLICE_BYTES,
    read() {
      timer.refresh();
      const slice = bytes.subarray(at, at + SLICE_BYTES);
      at += slice.length;
      this.push(slice.length === 0 ? null : slice);
    },
    destroy(error, callback) {
      // The last slices are still in the socket's buffers, which are small; the connection's own timeouts see to them.
      clearTimeout(timer);
      callback(error);
    },
  });
}
