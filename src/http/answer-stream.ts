/**
 * A large answer in pieces, made as its reader takes them: no more than a few are held at a time. A client that takes nothing for too long is cut off and frees what
 * it held, a slow one that goes on is served to the end.
 */
import type { Socket } from "node:net";
import { Readable } from "node:stream";

/** Made ahead of the reader. */
const AHEAD_BYTES = 256 * 1024;

export function streamToReader(pieces: Iterator<string | Buffer>, socket: Socket, idleTimeoutMs: number): Readable {
  const timer = setTimeout(() => socket.destroy(), idleTimeoutMs);
  timer.unref();
  return new Readable({
    highWaterMark: AHEAD_BYTES,
    read() {
      timer.refresh();
      const { done, value } = pieces.next();
      this.push(done === true ? null : value);
    },
    destroy(error, callback) {
      // The last pieces are still in the socket's buffers, which are small; the connection's own timeouts see to them.
      clearTimeout(timer);
      callback(error);
    },
  });
}
