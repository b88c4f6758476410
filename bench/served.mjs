/**
 * Starts a server as `lodestone serve` does, in a process and a data directory of its own, and fills a table
 * of vectors in it.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { idOf } from "./oracle.mjs";

const OWN_CHECKOUT = fileURLToPath(new URL("..", import.meta.url));
export const DATABASE = "/db/bench:main";
const BULK_ROWS = 1000;

/**
 * @param checkout  a built checkout of the project.
 * @param env       more variables of the server's environment.
 * @param nodeArgs  of node itself.
 * @returns {Promise<{port, pid, send(method, path, body), another(method, path, body), stop()}>} with a database to put tables
 * into; `another` sends on a second connection.
 */
export async function serve(checkout = OWN_CHECKOUT, env = {}, nodeArgs = []) {
  const directory = mkdtempSync(join(tmpdir(), "lodestone-bench-"));
  const removed = () => rmSync(directory, { recursive: true, force: true });
  try {
    const server = await start({ checkout, directory, env, nodeArgs });
    const stop = async () => {
      await server.stop();
      removed();
    };
    await server.send("PUT", DATABASE, {});
    return { ...server, stop };
  } catch (error) {
    removed();
    throw error;
  }
}

/**
 * Starts a server on a data directory that outlives it.
 *
 * @param args  more arguments of `lodestone serve`.
 * @returns {Promise<{port, pid, send(method, path, body), another(method, path, body), stop()}>} once it listens; it may not be ready yet.
 */
export async function start({ checkout = OWN_CHECKOUT, directory, args = [], env = {}, nodeArgs = [] }) {
  const child = spawn(
    process.execPath,
    [...nodeArgs, join(checkout, "dist/cli/main.js"), "serve", "--port", "0", "--data-dir", directory, ...args],
    {
      env: { ...process.env, LODESTONE_LOG_LEVEL: "info", ...env },
    },
  );
  const connections = [];
  const stop = async () => {
    for (const { close } of connections) close();
    if (child.exitCode === null && child.signalCode === null) {
      child.kill("SIGTERM");
      await once(child, "exit");
    }
  };
  try {
    const port = await portOf(child);
    connections.push(connect(port), connect(port));
    const [send, another] = connections.map((connection) => connection.send);
    return { port, pid: child.pid, send, another, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

export const tablePath = (table) => `${DATABASE}/tables/${table}`;

/**
 * Makes a table with the vector column "v" that contains the first `rows` rows of `data`; their ids are
 * idOf(row).
 */
export async function makeTable({ send }, table, { data, rows, dimension }) {
  await send("PUT", tablePath(table), { columns: [{ name: "v", type: "vector", vector: { dimension } }] });
  for (let at = 0; at < rows; at += BULK_ROWS) {
    const records = Array.from({ length: Math.min(BULK_ROWS, rows - at) }, (_, i) => ({
      id: idOf(at + i),
      v: Array.from(data.subarray((at + i) * dimension, (at + i + 1) * dimension)),
    }));
    await send("POST", `${tablePath(table)}/bulk`, { records });
  }
}

/** The port, read from the server's output. */
function portOf(child) {
  let text = "";
  child.stderr.resume();
  return new Promise((resolve, reject) => {
    child.stdout.on("data", (chunk) => {
      text += chunk;
      const url = /http:\/\/127\.0\.0\.1:(\d+)/.exec(text);
      if (url !== null) resolve(Number(url[1]));
    });
    child.once("error", reject);
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}`)));
  });
}

/** One kept connection. @returns {{send(method, path, body), close()}} */
export function connect(port) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  return { send: (method, path, body) => sendTo(agent, port, method, path, body), close: () => agent.destroy() };
}

/**
 * @param body  an object, or its JSON.
 * @throws if the response is not a success.
 */
function sendTo(agent, port, method, path, body) {
  const text = body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body);
  return new Promise((resolve, reject) => {
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
    const call = request({ host: "127.0.0.1", port, method, path, agent, headers }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => {
        const answer = JSON.parse(Buffer.concat(chunks).toString() || "{}");
        if (response.statusCode < 300) resolve(answer);
        else reject(new Error(`${method} ${path}: ${response.statusCode} ${answer.message}`));
      });
    });
    call.on("error", reject);
    call.end(text);
  });
}
