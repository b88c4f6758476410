/** Replicas behind nginx as it is shipped here, and behind a proxy that holds every answer back until it has ended. */
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, it } from "vitest";
import { Replica } from "../../src/library/replica/replica.ts";
import { startNginx } from "../support/nginx.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";

const TABLE = "/db/p:main/tables/t";

/** Follows a table behind the proxy that `start` starts. */
async function follow(start: (port: number) => Promise<{ readonly port: number; stop(): Promise<unknown> }>): Promise<void> {
  const server = await startServer();
  const proxy = await start(server.port);
  let replica: Replica | undefined;
  try {
    await server.put("/db/p:main");
    await server.put(TABLE, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
    await server.put(`${TABLE}/data/first`, { v: [1, 2] });
    replica = await Replica.open({ url: `http://127.0.0.1:${proxy.port}/db/p:main`, table: "t", columns: ["v"] });
    for (let i = 0; i < 5; i++) {
      await server.put(`${TABLE}/data/r${i}`, { v: [i, 1] });
      await expect.poll(() => replica!.get(`r${i}`), { timeout: LIMIT_MS }).toBeDefined();
    }
    await replica.current();
    expect(replica.status.phase).toBe("current");
  } finally {
    await replica?.close();
    await proxy.stop();
    await server.stop();
  }
}

describeWith("nginx", "nginx", (bin) => {
  it("as it is shipped passes changes on", () =>
    follow((port) =>
      startNginx(bin, "balancer.conf", (text) => text.replace(/( *server lodestone-\d:8787[^\n]*\n)+/, `server 127.0.0.1:${port};\n`)),
    ));
});

it("a proxy that holds answers back is noticed, and asked for answers that end", () =>
  follow(async (port) => {
    const proxy: Server = createServer((incoming, outgoing) => {
      const { method, url, headers } = incoming;
      const asked = request({ host: "127.0.0.1", port, method, path: url, headers }, (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("end", () => outgoing.writeHead(answer.statusCode!, answer.headers).end(Buffer.concat(pieces)));
        answer.on("error", () => outgoing.destroy());
      });
      asked.on("error", () => outgoing.destroy());
      outgoing.on("close", () => asked.destroy());
      incoming.pipe(asked);
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    return {
      port: (proxy.address() as AddressInfo).port,
      async stop() {
        proxy.closeAllConnections();
        await new Promise((resolve) => proxy.close(resolve));
      },
    };
  }));
