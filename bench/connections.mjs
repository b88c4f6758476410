/**
 * Many connections that are kept alive, and one with many requests at once (HTTP pipelining): how many are answered, how many of them the
 * server keeps (docs/limits.md says how many it does; one that waits gives way to a new one), and what each costs it.
 *
 * Usage: npm run build && npm run bench:connections -- [--connections 10000] [--against DIR]
 * Needs `ulimit -n` above the connections. Exit code 1 if a new connection is not answered, or one that was kept is not.
 */
import { once } from "node:events";
import { connect } from "node:net";
import { resolve } from "node:path";
import { cpuSecondsOf, statusMb } from "./process.mjs";
import { readOptions } from "./read-options.mjs";
import { serve } from "./served.mjs";

const options = readOptions(import.meta.url, { connections: { type: "string", default: "10000" }, against: { type: "string" } });
const connections = Number(options.connections);
const REQUEST = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
const OPENED_AT_ONCE = 200;
/** A client may have three quarters of a server's connections, so these are several. */
const CLIENTS = 20;
const PIPELINED = 1000;

for (const [name, checkout] of [["this"], ...(options.against === undefined ? [] : [["other", resolve(options.against)]])]) {
  const server = await serve(checkout);
  const sockets = [];
  try {
    await answersOf(await opened(server.port, 0), 1);
    const before = { rss: statusMb(server.pid, "VmRSS"), cpu: cpuSecondsOf(server.pid) };
    let answered = 0;
    for (let at = 0; at < connections; at += OPENED_AT_ONCE) {
      const some = Array.from({ length: Math.min(OPENED_AT_ONCE, connections - at) }, (_, i) => opened(server.port, at + i));
      const fresh = await Promise.all(some);
      sockets.push(...fresh);
      answered += await countAnswered(fresh);
    }
    const kept = sockets.filter((socket) => !socket.destroyed);
    const again = await countAnswered(kept);
    const kB = ((1024 * (statusMb(server.pid, "VmRSS") - before.rss)) / kept.length).toFixed(1);
    const us = ((1e6 * (cpuSecondsOf(server.pid) - before.cpu)) / (answered + again)).toFixed(0);
    const began = performance.now();
    await answersOf(kept.at(-1), PIPELINED);
    const ms = (performance.now() - began).toFixed(0);
    console.log(
      `${name.padEnd(6)} ${answered} of ${connections} new connections answered, ${again} of ${kept.length} kept ones once more; ` +
        `${kB} kB for each kept, ${us} µs of CPU for each request; ${PIPELINED} pipelined requests in ${ms} ms`,
    );
    if (name === "this" && (answered < connections || again < kept.length)) process.exitCode = 1;
  } catch (error) {
    console.error(`${name}: ${error.message}`);
    process.exitCode = 1;
  } finally {
    for (const socket of sockets) socket.destroy();
    await server.stop();
  }
}

async function opened(port, client) {
  const socket = connect({ port, host: "127.0.0.1", localAddress: `127.0.0.${2 + (client % CLIENTS)}` });
  await once(socket, "connect");
  return socket;
}

async function countAnswered(sockets) {
  const answers = await Promise.all(
    sockets.map((socket) =>
      answersOf(socket, 1).then(
        () => 1,
        () => 0,
      ),
    ),
  );
  return answers.reduce((sum, one) => sum + one, 0);
}

/** Sends so many requests in one piece. @throws unless each is answered with success. */
function answersOf(socket, count) {
  return new Promise((done, reject) => {
    if (socket.destroyed) return reject(new Error("a connection was closed"));
    let text = "";
    const ended = () => reject(new Error("a connection was closed"));
    const onData = (chunk) => {
      text += chunk.toString("latin1");
      const statuses = text.match(/HTTP\/1\.1 \d+/g) ?? [];
      if (statuses.some((status) => status !== "HTTP/1.1 200")) return reject(new Error(`answered ${statuses.at(-1)}`));
      if (statuses.length < count || !text.endsWith("}")) return;
      socket.off("data", onData).off("close", ended);
      done();
    };
    socket.on("data", onData).once("close", ended);
    socket.on("error", () => {});
    socket.write(REQUEST.repeat(count));
  });
}
