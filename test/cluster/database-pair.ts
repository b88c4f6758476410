/**
 * A PostgreSQL and its standby, which takes its place any number of times. Commits wait for the standby, unless
 * it is made asynchronous.
 */
import pg from "pg";
import { startPostgres, type TestPostgres } from "../support/postgres.ts";
import { startStandby, type TestStandby } from "../support/standby.ts";

/** The standby's name to the primary. */
const STANDBY = "standby";

export class DatabasePair {
  /** Of an empty database on the first primary; later ones have it under the same name. */
  readonly url: string;
  readonly #bin: string;
  #primary: TestPostgres | TestStandby;
  #standby: TestStandby | undefined;
  #former: TestPostgres | TestStandby | undefined;

  private constructor(bin: string, primary: TestPostgres, url: string) {
    this.#bin = bin;
    this.#primary = primary;
    this.url = url;
  }

  static async start(bin: string): Promise<DatabasePair> {
    const primary = await startPostgres(bin, ["wal_level=replica", "max_wal_senders=8"]);
    const pair = new DatabasePair(bin, primary, await primary.createDatabase());
    await pair.renewStandby();
    return pair;
  }

  /** The port of the primary. */
  get port(): number {
    return this.#primary.port;
  }

  get standby(): TestStandby {
    if (this.#standby === undefined) throw new Error("There is no standby at the moment.");
    return this.#standby;
  }

  /** From now on commits do not wait for the standby. */
  async makeAsynchronous(): Promise<void> {
    await this.#waitFor("");
  }

  /** The standby becomes the primary. The former one continues, and must not be reached any more. */
  async promote(): Promise<void> {
    await this.standby.promote();
    this.#former = this.#primary;
    this.#primary = this.standby;
    this.#standby = undefined;
  }

  /** Stops the former primary, and adds a synchronous standby. */
  async renewStandby(): Promise<void> {
    await this.#former?.stop();
    this.#former = undefined;
    this.#standby = await startStandby(this.#bin, this.port, STANDBY);
    await this.#waitFor(STANDBY);
  }

  /**
   * Waits until the primary has ended every statement that it is working on now: a commit may wait for the
   * standby for seconds.
   */
  async untilNothingIsOlder(): Promise<void> {
    await this.#administer(async (client) => {
      const { rows } = await client.query<{ now: string }>("SELECT now()::text AS now");
      const running = "backend_type = 'client backend' AND state <> 'idle' AND pid <> pg_backend_pid() AND xact_start < $1";
      const isRunning = async (): Promise<boolean> =>
        (await client.query(`SELECT 1 FROM pg_stat_activity WHERE ${running} LIMIT 1`, [rows[0]!.now])).rows.length > 0;
      while (await isRunning()) await new Promise((resolve) => setTimeout(resolve, 50));
    });
  }

  async stop(): Promise<void> {
    for (const server of [this.#standby, this.#former, this.#primary]) await server?.stop();
  }

  async #waitFor(standby: string): Promise<void> {
    await this.#administer(async (client) => {
      await client.query(`ALTER SYSTEM SET synchronous_standby_names = '${standby}'`);
      await client.query("SELECT pg_reload_conf()");
    });
  }

  async #administer(work: (client: pg.Client) => Promise<void>): Promise<void> {
    const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${this.port}/postgres` });
    await client.connect();
    try {
      await work(client);
    } finally {
      await client.end();
    }
  }
}
