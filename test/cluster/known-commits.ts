/**
 * Commits one row after the other on a primary, past Lodestone, while an asynchronous standby is about to be
 * promoted. The rows that the standby has tell up to which instant commits are left, to a few milliseconds.
 */
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import type { Promotion } from "../reliability/checker/history.ts";
import { until } from "../support/patience.ts";

const PAUSE_MS = 2;

interface Commit {
  readonly sentMs: number;
  readonly answeredMs: number;
}

export class KnownCommits {
  /** The n-th row's, from 1 on. */
  readonly #commits: Commit[] = [];
  readonly #client: pg.Client;
  /** The standby may still have the rows of an earlier promotion. */
  readonly #id = randomUUID();
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  private constructor(client: pg.Client) {
    this.#client = client;
  }

  static async start(port: number): Promise<KnownCommits> {
    const commits = new KnownCommits(await connect(port));
    await commits.#client.query("CREATE TABLE IF NOT EXISTS known_commits (run uuid, n int4)");
    commits.#running = commits.#run();
    return commits;
  }

  async #run(): Promise<void> {
    while (!this.#stopped) {
      const sentMs = performance.now();
      await this.#client.query("INSERT INTO known_commits VALUES ($1, $2)", [this.#id, this.#commits.length + 1]);
      this.#commits.push({ sentMs, answeredMs: performance.now() });
      await sleep(PAUSE_MS);
    }
  }

  /** Waits until the standby has some of them. */
  async untilReceivedBy(port: number): Promise<void> {
    await until("the standby receives something", async () => (await this.#rowsOn(port)).last > 0);
  }

  /** Waits until one that begins now, or later, is acknowledged. */
  async untilMore(): Promise<void> {
    const enough = this.#commits.length + 2;
    await until("another commit", () => this.#commits.length >= enough);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#running;
    await this.#client.end();
  }

  /**
   * @param port  of the new primary.
   * @throws if it has other rows than the first ones.
   */
  async endOn(port: number): Promise<Pick<Promotion, "leftUntilMs" | "lostFromMs">> {
    const { count, last } = await this.#rowsOn(port);
    const [lastLeft, firstLost] = [this.#commits[last - 1], this.#commits[last]];
    if (count !== last || lastLeft === undefined || firstLost === undefined)
      throw new Error(`Of ${this.#commits.length} commits in a row, ${count} are left, and ${last} is the last of them.`);
    return { leftUntilMs: lastLeft.sentMs, lostFromMs: firstLost.answeredMs };
  }

  async #rowsOn(port: number): Promise<{ count: number; last: number }> {
    const client = await connect(port);
    try {
      // A standby may not have the table yet.
      const { rows } = await client.query<{ known: string | null }>("SELECT to_regclass('known_commits')::text AS known");
      if (rows[0]!.known === null) return { count: 0, last: 0 };
      const counted = "SELECT count(*)::int4 AS count, coalesce(max(n), 0) AS last FROM known_commits WHERE run = $1";
      return (await client.query(counted, [this.#id])).rows[0]!;
    } finally {
      await client.end();
    }
  }
}

async function connect(port: number): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: `postgres://postgres@127.0.0.1:${port}/postgres` });
  await client.connect();
  return client;
}
