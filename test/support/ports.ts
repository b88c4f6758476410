/** Ports on loopback. */
import { connect, createServer } from "node:net";
import { until } from "./patience.ts";

// Below those that systems give to outgoing connections and to `listen(0)` (from 32768 on Linux, 49152 elsewhere): such a
// port would be free now and somebody's when the server that is to have it has started.
const FIRST = 12_000;
const PORTS = 18_000;
const MOST_TRIES = 100;
const given = new Set<number>();

/** @returns a port that nobody listens on, and that this process has not given before. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const port = FIRST + Math.floor(Math.random() * PORTS);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`${MOST_TRIES} ports were tried, and none is free`);
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

/** Resolves when a process listens there. */
export async function listening(port: number): Promise<void> {
  await until(
    `a process listens on port ${port}`,
    () =>
      new Promise<boolean>((resolve) => {
        const socket = connect(port, "127.0.0.1", () => {
          socket.destroy();
          resolve(true);
        });
        socket.once("error", () => resolve(false));
      }),
  );
}
