import { createConnection, createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { freePort, listening } from "../support/ports.ts";
import { startTcpProxy } from "../support/tcp-proxy.ts";

it("A proxy keeps bytes in order when the delay of its network ends", async () => {
  const port = await freePort();
  let received = "";
  const database = createServer((socket) => socket.on("data", (chunk) => (received += chunk))).listen(port, "127.0.0.1");
  await listening(port);
  const proxy = await startTcpProxy(port);
  const client = createConnection(proxy.port, "127.0.0.1");
  await proxy.forward(port, 100);
  client.write("first ");
  await sleep(30);
  await proxy.forward(port);
  client.write("second");
  while (!received.includes("second")) await sleep(10);
  expect(received).toBe("first second");
  client.destroy();
  await proxy.close();
  await new Promise((resolve) => database.close(resolve));
});
