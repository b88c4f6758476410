/** Queries of our own for a `pg` client, which sends and receives the messages of the protocol for them. */
import type pg from "pg";
import type { ProtocolConnection } from "./protocol-connection.ts";

/** The methods that a `pg` client calls on the query it runs. */
export abstract class Submittable<Result> {
  readonly done: Promise<Result>;
  protected resolve!: (result: Result) => void;
  protected reject!: (error: Error) => void;
  /** pg replaces a missing callback; our promise takes its place. */
  callback = (): void => {};

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: ProtocolConnection): Error | null {
    connection.stream.cork();
    try {
      this.send(connection);
    } finally {
      connection.stream.uncork();
    }
    return null;
  }

  protected abstract send(connection: ProtocolConnection): void;
  abstract handleReadyForQuery(connection: ProtocolConnection): void;

  handleError(error: Error, _connection: ProtocolConnection): void {
    this.reject(error);
  }
  handleRowDescription(_message: unknown): void {}
  handleDataRow(_message: unknown): void {}
  handleCommandComplete(_message: unknown, _connection: ProtocolConnection): void {}
  handlePortalSuspended(_connection: ProtocolConnection): void {}
  handleEmptyQuery(_connection: ProtocolConnection): void {}
  handleCopyInResponse(_connection: ProtocolConnection): void {}
  handleCopyData(_message: unknown, _connection: ProtocolConnection): void {}
}

/** Runs the query once those before it on the client have ended. */
export function submit<Result>(client: pg.ClientBase, query: Submittable<Result>): Promise<Result> {
  client.query(query as unknown as pg.Submittable);
  return query.done;
}
