/**
 * What all requests of one connection have in common. It is made once, since a connection that is kept alive
 * carries thousands of small requests.
 */
import { setMaxListeners } from "node:events";
import type { Socket } from "node:net";
import { ClientGoneError } from "../status.ts";
import { networkOf } from "./client-address.ts";

export class ClientConnection {
  readonly address: string;
  /** What it is counted as: see client-address.ts. */
  readonly network: string;
  /** Of its requests, those that were admitted and are not done. While there are any, it is not closed to make room. */
  admitted = 0;
  #controller = abortController();

  constructor(socket: Socket) {
    this.address = socket.remoteAddress ?? "";
    this.network = networkOf(this.address);
    if (socket.destroyed) this.endRequests(new ClientGoneError());
    else socket.once("close", () => this.#controller.abort(new ClientGoneError()));
  }

  /**
   * Aborted with {ClientGoneError} when the connection has closed, or with the reason of `endRequests`. It lives longer
   * than a request, so a listener has to be removed when its request has ended.
   */
  get gone(): AbortSignal {
    return this.#controller.signal;
  }

  /** Work for its requests that has not begun does not begin, and reading ends. Requests that come later are not concerned. */
  endRequests(reason: Error): void {
    const ended = this.#controller;
    if (!(reason instanceof ClientGoneError)) this.#controller = abortController();
    ended.abort(reason);
  }
}

function abortController(): AbortController {
  const controller = new AbortController();
  // A client that sends requests without waiting for answers has many on their way.
  setMaxListeners(0, controller.signal);
  return controller;
}

const connections = new WeakMap<Socket, ClientConnection>();

export function connectionOf(socket: Socket): ClientConnection {
  let connection = connections.get(socket);
  if (connection === undefined) {
    connection = new ClientConnection(socket);
    connections.set(socket, connection);
  }
  return connection;
}
