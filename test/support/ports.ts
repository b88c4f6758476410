/** Ports on loopback. */
import { connect, createServer } from "node:net";

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}

/** Resolves when a process listens there; rejects after ten seconds. */
export async function listening(port: number): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const error = await new Promise<Error | undefined>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        socket.destroy();
        resolve(undefined);
      });
      socket.once("error", resolve);
    });
    if (error === undefined) return;
    if (attempt === 200) throw error;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
