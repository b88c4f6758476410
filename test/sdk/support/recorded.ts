/** Requests that were recorded from other clients, sent byte for byte. */
import { createConnection } from "node:net";

export async function sendBytes(port: number, request: string): Promise<{ status: number; body: unknown }> {
  const socket = createConnection(port, "127.0.0.1");
  socket.write(request.replace("connection: keep-alive", "connection: close"));
  let text = "";
  for await (const chunk of socket) text += chunk;
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { status: Number(head.split(" ")[1]), body: body === "" ? undefined : JSON.parse(body) };
}
