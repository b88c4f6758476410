/**
 * What all requests of one connection have in common. It is made once, since a connection that is kept alive
 * carries thousands of small requests.
 */
import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import { ClientGoneError } from "./status.ts";

export interface ClientConnection {
  /** Whom requests without a key are charged to: `address 127.0.0.1`. */
  readonly caller: string;
  /**
   * Aborted with {ClientGoneError} when the connection has closed. It lives as long as the connection, so a listener
   * has to be removed when its request has ended.
   */
  readonly gone: AbortSignal;
}

const connections = new WeakMap<Socket, ClientConnection>();

export function connectionOf(socket: Socket): ClientConnection {
  let connection = connections.get(socket);
  if (connection === undefined) {
    const controller = new AbortController();
    // A client that sends requests without waiting for answers has many on their way.
    setMaxListeners(0, controller.signal);
    if (socket.destroyed) controller.abort(new ClientGoneError());
    else socket.once("close", () => controller.abort(new ClientGoneError()));
    connection = { caller: `address ${socket.remoteAddress}`, gone: controller.signal };
    connections.set(socket, connection);
  }
  return connection;
}
