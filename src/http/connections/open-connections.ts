/**
 * The connections that the process has open, bounded in all and for each client. Each takes a file descriptor, which
 * the database needs, too. Nobody can keep others out: a new connection that finds no room takes the place of one that
 * waits for a request, the longest waiting of the client who has the most. So a client with few connections (a health
 * check) always gets in, and among those who want more than there are, each ends with an equal part.
 */
import type { Socket } from "node:net";
import type { TrustedProxies } from "./client-address.ts";
import { type ClientConnection, connectionOf } from "./client-connection.ts";

/** The last quarter is for others. */
const mostOfOneClient = (connections: number): number => connections - Math.floor(connections / 4);

export class OpenConnections {
  readonly #most: number;
  readonly #mostOfOne: number;
  readonly #proxies: TrustedProxies;
  readonly #onNotice: (sentence: string) => void;
  /** Of each client, in the order of their last requests. */
  readonly #clients = new Map<string, Set<Socket>>();
  #count = 0;
  #isFull = false;

  /** @param onNotice  told in a sentence when connections begin to be closed for others. */
  constructor(connections: number, proxies: TrustedProxies, onNotice: (sentence: string) => void = () => {}) {
    this.#most = connections;
    this.#mostOfOne = mostOfOneClient(connections);
    this.#proxies = proxies;
    this.#onNotice = onNotice;
  }

  get count(): number {
    return this.#count;
  }

  /** Counts the connection, or closes it at once when every other one is needed more. */
  enter(socket: Socket): void {
    const connection = connectionOf(socket);
    // Those of a proxy stand for many clients.
    const isProxy = this.#proxies.includes(connection.address);
    const own = this.#clients.get(connection.network);
    const hasItsPart = !isProxy && own !== undefined && own.size >= this.#mostOfOne;
    if (hasItsPart || this.#count >= this.#most) {
      this.#tellOnce(hasItsPart, connection);
      const other = hasItsPart ? firstWaiting(own) : this.#firstWaitingOfMost();
      if (other === undefined) {
        socket.destroy();
        return;
      }
      this.#leave(other);
      other.destroy();
    }
    const sockets = this.#clients.get(connection.network) ?? new Set();
    this.#clients.set(connection.network, sockets.add(socket));
    this.#count++;
    socket.once("close", () => this.#leave(socket));
  }

  /** A request has come: it is the last now. */
  asked(socket: Socket): void {
    const sockets = this.#clients.get(connectionOf(socket).network);
    if (sockets?.delete(socket) === true) sockets.add(socket);
  }

  #leave(socket: Socket): void {
    const { network } = connectionOf(socket);
    const sockets = this.#clients.get(network);
    if (sockets?.delete(socket) !== true) return;
    if (sockets.size === 0) this.#clients.delete(network);
    this.#count--;
    if (this.#count < this.#most / 2) this.#isFull = false;
  }

  /** Proxies' only when there are no others. Cost: one step per client. */
  #firstWaitingOfMost(): Socket | undefined {
    let found: { readonly socket: Socket; readonly weight: number } | undefined;
    for (const sockets of this.#clients.values()) {
      const [first] = sockets;
      const weight = this.#proxies.includes(connectionOf(first as Socket).address) ? 0 : sockets.size;
      if (found !== undefined && found.weight >= weight) continue;
      const socket = firstWaiting(sockets);
      if (socket !== undefined) found = { socket, weight };
    }
    return found?.socket;
  }

  #tellOnce(hasItsPart: boolean, { network }: ClientConnection): void {
    if (this.#isFull) return;
    this.#isFull = true;
    const who = hasItsPart ? `The client ${network} has ${this.#mostOfOne} of ${this.#most}` : `All ${this.#most}`;
    this.#onNotice(
      `${who} connections are open, or asked for. Each new one closes one that waits for a request. Clients behind a proxy are told apart with --trust-proxy.`,
    );
  }
}

/** Skips those whose requests are worked on, which are not many. */
function firstWaiting(sockets: ReadonlySet<Socket>): Socket | undefined {
  for (const socket of sockets) if (connectionOf(socket).admitted === 0) return socket;
  return undefined;
}
