/** Serves given files on a loopback port, like any plain web server. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface StaticFile {
  type: string;
  body: string | Uint8Array;
  headers?: Record<string, string>;
}

/** @returns the server's address and a function that stops it. */
export async function serveStatic(files: ReadonlyMap<string, StaticFile>): Promise<{ url: string; close: () => Promise<void> }> {
  const server = createServer((request, response) => {
    const file = files.get(new URL(request.url ?? "/", "http://localhost").pathname);
    if (file === undefined) response.writeHead(404).end("not found");
    else response.writeHead(200, { "content-type": file.type, ...file.headers }).end(file.body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
