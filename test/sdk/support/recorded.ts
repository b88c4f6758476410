/** Requests that were recorded from other clients, sent byte for byte. */
import { createConnection } from "node:net";
import { gunzipSync } from "node:zlib";

const END_OF_HEAD = "\r\n\r\n";

export async function sendBytes(port: number, request: string): Promise<{ status: number; body: unknown }> {
  const socket = createConnection(port, "127.0.0.1");
  socket.write(request.replace("connection: keep-alive", "connection: close"));
  const chunks: Buffer[] = [];
  for await (const chunk of socket) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  const end = bytes.indexOf(END_OF_HEAD);
  const head = bytes.toString("latin1", 0, end);
  const sent = bytes.subarray(end + END_OF_HEAD.length);
  // As the clients do, which ask for it.
  const body = (/^content-encoding: gzip$/im.test(head) ? gunzipSync(sent) : sent).toString();
  return { status: Number(head.split(" ")[1]), body: body === "" ? undefined : JSON.parse(body) };
}
