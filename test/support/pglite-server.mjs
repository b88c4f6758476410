/**
 * PGlite with pgvector, in a process of its own, on a free port of loopback, for clients of PostgreSQL.
 * PGlite has one session: it is lent to one connection at a time, from the first message of a transaction to
 * its end, so several clients can be open at once, as long as none waits inside a transaction for another.
 *
 * Prints its port. Ends when its standard input does.
 */
import { createServer } from "node:net";
import { PGlite } from "@electric-sql/pglite";
import { vector } from "@electric-sql/pglite-pgvector";

const QUERY = "Q".charCodeAt(0);
const SYNC = "S".charCodeAt(0);
const TERMINATE = "X".charCodeAt(0);
const READY = "Z".charCodeAt(0);
const IDLE = "I".charCodeAt(0);

const db = await PGlite.create({ extensions: { vector } });

/** The turn of whoever comes next begins when the one before has ended. */
let turn = Promise.resolve();

/** The status of the last ReadyForQuery among whole messages. */
function statusOf(reply) {
  const view = Buffer.from(reply.buffer, reply.byteOffset, reply.byteLength);
  let status;
  for (let at = 0; at + 5 <= view.length; at += 1 + view.readInt32BE(at + 1)) if (view[at] === READY) status = view[at + 5];
  return status;
}

function serve(socket) {
  let pending = Buffer.alloc(0);
  let isStarted = false;
  let endTurn;
  let work = Promise.resolve();

  const run = async (unit) => {
    if (endTurn === undefined) {
      const before = turn;
      turn = new Promise((resolve) => {
        endTurn = resolve;
      });
      await before;
    }
    const reply = db.execProtocolRawSync(unit);
    socket.write(reply);
    if (statusOf(reply) === IDLE) leave();
  };
  const leave = () => {
    endTurn?.();
    endTurn = undefined;
  };

  socket.on("data", (chunk) => {
    pending = Buffer.concat([pending, chunk]);
    if (!isStarted) {
      if (pending.length < 4 || pending.length < pending.readInt32BE(0)) return;
      const length = pending.readInt32BE(0);
      const startup = pending.subarray(0, length);
      pending = pending.subarray(length);
      isStarted = true;
      work = work.then(() => run(startup));
    }
    let at = 0;
    let end = 0;
    while (pending.length - at >= 5 && pending.length - at > pending.readInt32BE(at + 1)) {
      const type = pending[at];
      at += pending.readInt32BE(at + 1) + 1;
      if (type === TERMINATE) socket.end();
      else if (type === QUERY || type === SYNC) end = at;
    }
    if (end === 0) return;
    const unit = Buffer.from(pending.subarray(0, end));
    pending = pending.subarray(end);
    work = work.then(() => run(unit));
  });
  socket.on("error", () => {});
  socket.on("close", () => {
    void work.then(async () => {
      if (endTurn === undefined) return;
      await db.exec("ROLLBACK");
      leave();
    });
  });
}

const server = createServer(serve);
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.stdin.on("end", () => process.exit()).resume();
