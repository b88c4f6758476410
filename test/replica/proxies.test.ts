/** Replicas behind nginx: as it is shipped here, and one that holds every answer back until it has ended. */
import { expect, it } from "vitest";
import { Replica } from "../../src/library/replica/replica.ts";
import { startNginx } from "../support/nginx.ts";
import { LIMIT_MS } from "../support/patience.ts";
import { describeWith } from "../support/requirements.ts";
import { startServer } from "../support/server.ts";

const TABLE = "/db/p:main/tables/t";
const HOLDS_BACK =
  "proxy_ignore_headers X-Accel-Buffering; proxy_buffering on; proxy_buffers 8 1m; proxy_buffer_size 1m; proxy_busy_buffers_size 2m;";

describeWith("nginx", "a replica behind nginx", (bin) => {
  it.each([
    ["as it is shipped", ""],
    ["which holds answers back", HOLDS_BACK],
  ])("%s", async (_, more) => {
    const server = await startServer();
    const nginx = await startNginx(bin, "balancer.conf", (text) =>
      text
        .replace(/( *server lodestone-\d:8787[^\n]*\n)+/, `server 127.0.0.1:${server.port};\n`)
        .replaceAll("proxy_pass http://lodestone;", `proxy_pass http://lodestone; ${more}`),
    );
    let replica: Replica | undefined;
    try {
      await server.put("/db/p:main");
      await server.put(TABLE, { columns: [{ name: "v", type: "vector", vector: { dimension: 2 } }] });
      await server.put(`${TABLE}/data/first`, { v: [1, 2] });
      const url = `http://127.0.0.1:${nginx.port}/db/p:main`;
      replica = await Replica.open({ url, table: "t", columns: ["v"] });
      for (let i = 0; i < 5; i++) {
        await server.put(`${TABLE}/data/r${i}`, { v: [i, 1] });
        await expect.poll(() => replica!.get(`r${i}`), { timeout: LIMIT_MS }).toBeDefined();
      }
      expect(replica.status.phase).toBe("current");
    } finally {
      await replica?.close();
      await nginx.stop();
      await server.stop();
    }
  });
});
