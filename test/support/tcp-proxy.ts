/**
 * A TCP proxy on a loopback port, between a server and its database, which simulates outages.
 *
 * Usage: `const proxy = await startTcpProxy(5432); proxy.url(databaseUrl); await proxy.refuse(); …; await
 * proxy.forward(); …; await proxy.close();`
 */
import { createConnection, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

export class TcpProxy {
  #target: number;
  #server: Server | undefined;
  #port = 0;
  #mode: "forward" | "swallow" | "hang up" = "forward";
  #delayMs = 0;
  readonly #sockets = new Set<Socket>();
  /**
   * Connections that clients have tried to open since the proxy started, as far as it could see them (not
   * while it refuses).
   */
  accepted = 0;

  constructor(target: number) {
    this.#target = target;
  }

  get port(): number {
    return this.#port;
  }

  /** Client connections that are open now. */
  get open(): number {
    return this.#sockets.size / 2;
  }

  /** The URL through the proxy. */
  url(databaseUrl: string): string {
    const url = new URL(databaseUrl);
    url.host = `127.0.0.1:${this.#port}`;
    return url.href;
  }

  /** From now on forwards connections to `target`, a port on loopback. */
  async forward(target = this.#target, delayMs = 0): Promise<void> {
    this.#target = target;
    this.#delayMs = delayMs;
    if (this.#mode === "swallow") this.#breakAll();
    this.#mode = "forward";
    if (this.#server === undefined) await this.#listen();
  }

  /** Breaks all connections and refuses new ones, like a machine whose database has stopped. */
  async refuse(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    this.#breakAll();
    if (server !== undefined) await new Promise<void>((resolve) => server.close(() => resolve()));
  }

  /** Accepts everything and forwards nothing, like a network that loses every packet. */
  async swallow(): Promise<void> {
    this.#mode = "swallow";
    if (this.#server === undefined) await this.#listen();
  }

  /**
   * Breaks all connections, and accepts new ones only to break them at once: `accepted` counts the attempts.
   */
  async hangUp(): Promise<void> {
    this.#mode = "hang up";
    this.#breakAll();
    if (this.#server === undefined) await this.#listen();
  }

  /** Breaks open connections; new ones are forwarded. */
  breakAll(): void {
    this.#breakAll();
  }

  async close(): Promise<void> {
    await this.refuse();
  }

  async #listen(): Promise<void> {
    const server = createServer((client) => this.#take(client));
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(this.#port, "127.0.0.1", () => resolve());
    });
    this.#port = (server.address() as { port: number }).port;
    this.#server = server;
  }

  #take(client: Socket): void {
    this.accepted++;
    if (this.#mode === "hang up") {
      client.on("error", () => {});
      client.destroy();
      return;
    }
    const database = createConnection(this.#target, "127.0.0.1");
    const pass = (from: Socket, to: Socket): void => {
      this.#sockets.add(from);
      // Bytes stay in order when the delay changes.
      let sent: Promise<unknown> = Promise.resolve();
      from.on("data", (chunk: Buffer) => {
        if (this.#mode === "swallow") return;
        const due = this.#delayMs > 0 ? sleep(this.#delayMs) : undefined;
        sent = sent.then(() => due).then(() => to.writable && to.write(chunk));
      });
      from.on("error", () => to.destroy());
      from.on("close", () => {
        this.#sockets.delete(from);
        // A network that loses packets does not report the end either.
        if (this.#mode !== "swallow") to.destroy();
      });
    };
    pass(client, database);
    pass(database, client);
  }

  #breakAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

export async function startTcpProxy(target: number): Promise<TcpProxy> {
  const proxy = new TcpProxy(target);
  await proxy.forward();
  return proxy;
}
