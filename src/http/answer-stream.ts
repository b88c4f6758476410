/**
 * A large answer, made in pieces as its reader takes them: only a few are held at a time. A client that reads
 * nothing for too long is disconnected, and what it held is freed. A slow client that keeps reading is served to
 * the end.
 */
import type { Socket } from "node:net";
import { Readable } from "node:stream";
import { Slices } from "../threads/event-loop.ts";

/** Made ahead of the reader. */
const AHEAD_BYTES = 256 * 1024;

/**
 * Written as JSON in a few milliseconds. Without this limit, an answer whose reader takes everything at once would be
 * made in one turn of the event loop.
 */
const SLICE_LENGTH = 128 * 1024;

/** @param pieces made when they are asked for; the next is asked for once the one before is. What throws ends the connection. */
export function streamToReader(
  pieces: Iterator<string | Buffer> | AsyncIterator<Buffer>,
  socket: Pick<Socket, "destroy">,
  idleTimeoutMs: number,
  caller = "",
): Readable {
  const slices = new Slices(SLICE_LENGTH, caller);
  let isUsedUp = false;
  let isMaking = false;
  // While a piece is being made, it is not the reader who is slow.
  const timer = setTimeout(() => (isMaking ? timer.refresh() : socket.destroy()), idleTimeoutMs);
  timer.unref();
  return new Readable({
    highWaterMark: AHEAD_BYTES,
    read() {
      timer.refresh();
      const pushNext = async (): Promise<void> => {
        if (this.destroyed) return;
        isMaking = true;
        try {
          const { done, value } = await pieces.next();
          isUsedUp = done !== true && slices.spend(value.length);
          isMaking = false;
          timer.refresh();
          this.push(done === true ? null : value);
        } catch (error) {
          this.destroy(error as Error);
        }
      };
      if (!isUsedUp) void pushNext();
      else void slices.rest().then(pushNext);
    },
    destroy(error, callback) {
      // The last pieces are still in the socket's buffers, which are small; the timeouts of the connection take
      // care of them.
      clearTimeout(timer);
      callback(error);
    },
  });
}
