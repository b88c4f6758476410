/**
 * A process that the crash tests kill. usage: node crash-child.mjs MODE DATA_DIR. Reports what
 * it has done on stdout, one line each.
 */
import { once } from "node:events";
import { closeSync, openSync, readdirSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DirectoryLock } from "../../../dist/files/directory-lock.js";
import { pgDataPath } from "../../../dist/records/engine/embedded/data-directory.js";
import { openEngine } from "../../../dist/records/engine/open-engine.js";

const [mode, dataDir] = process.argv.slice(2);
/** A synchronous write: what was reported was reported before the kill. */
const say = (line) => writeSync(1, `${line}\n`);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const die = () => {
  process.kill(process.pid, "SIGKILL");
  block(10_000);
};

/** When the database's log was written. */
const logTimes = () => {
  const folder = join(pgDataPath(dataDir), "pg_wal");
  return readdirSync(folder)
    .map((name) => statSync(join(folder, name), { bigint: true }).mtimeNs)
    .join();
};

if (mode === "lock") {
  // All processes that were started together are told at the same moment, when all are ready.
  say("ready");
  await once(process.stdin, "data");
  try {
    const lock = await DirectoryLock.acquire(dataDir, () => {});
    // Fails if another process has it as well.
    writeFileSync(`${dataDir}.holder`, "", { flag: "wx" });
    await sleep(300);
    rmSync(`${dataDir}.holder`);
    say("got");
    lock.release();
  } catch (error) {
    say(`refused ${error.code}`);
  }
  process.exit(0);
}

if (mode === "lock-without-descriptors") {
  const opened = [];
  const lock = await DirectoryLock.acquire(dataDir, () => say("lost"), {
    heartbeatMs: 10,
    onFault: (error) => {
      say(`fault ${error.message}`);
      for (const descriptor of opened.splice(0)) closeSync(descriptor);
    },
    onRecovery: (sentence) => {
      say(`recovery ${sentence}`);
      lock.release();
      say("released");
      process.exit(0);
    },
  });
  try {
    for (;;) opened.push(openSync("/dev/null"));
  } catch (error) {
    if (error.code !== "EMFILE") throw error;
  }
  await sleep(600_000);
}

const engine = await openEngine({ dataDir });
await engine.query("CREATE TABLE IF NOT EXISTS pairs (n int4, half text, PRIMARY KEY (n, half))");
const { rows } = await engine.query("SELECT coalesce(max(n), 0) AS n FROM pairs");
let n = rows[0].n;
say("open");

const insertPair = async (connection, number) => {
  await connection.query("INSERT INTO pairs VALUES ($1, 'a')", [number]);
  await connection.query("INSERT INTO pairs VALUES ($1, 'b')", [number]);
};
const insert = async () => {
  const number = ++n;
  await engine.transaction((connection) => insertPair(connection, number));
  say(`inserted ${number}`);
};

switch (mode) {
  case "hold":
    await sleep(600_000);
    break;
  case "write":
    for (let i = 1; i <= 100_000; i++) {
      await insert();
      if (i % 7 === 0) {
        const number = n - 3;
        say(`deleting ${number}`);
        await engine.query("DELETE FROM pairs WHERE n = $1", [number]);
        say(`deleted ${number}`);
      }
      if (i % 50 === 0) await engine.query("CHECKPOINT");
    }
    break;
  case "before-commit":
    for (let i = 0; i < 20; i++) await insert();
    await engine.transaction(async (connection) => {
      await insertPair(connection, ++n);
      die();
    });
    break;
  case "after-commit":
    for (let i = 0; i < 20; i++) await insert();
    // The worker thread commits while this one cannot hear of it: committed, and never acknowledged. A commit is what is
    // written last to the log.
    await sleep(100);
    {
      const before = logTimes();
      void engine.query("INSERT INTO pairs SELECT $1, unnest(ARRAY['a', 'b'])", [++n]);
      await null;
      setImmediate(() => {
        while (logTimes() === before) block(10);
        die();
      });
    }
    await sleep(600_000);
    break;
  case "during-checkpoint":
    for (let i = 0; i < 100; i++) await insert();
    void engine.query("CHECKPOINT");
    setImmediate(() => {
      block(Math.random() * 40);
      die();
    });
    await sleep(600_000);
    break;
  case "fill":
    await engine.query("CREATE TABLE IF NOT EXISTS filler (text text)");
    await engine.query("ALTER TABLE filler ALTER text SET STORAGE EXTERNAL");
    for (let i = 0, failures = 0; i < 400 && failures < 5; i++) {
      const number = ++n;
      await engine
        .transaction(async (connection) => {
          await insertPair(connection, number);
          await connection.query("INSERT INTO filler VALUES (repeat('x', 200000))");
        })
        .then(() => say(`inserted ${number}`))
        .catch((error) => {
          failures++;
          say(`failed ${error.code}`);
        });
    }
    await engine.query("SELECT count(*)::int4 AS n FROM pairs").then(
      ({ rows: counted }) => say(`read ${counted[0].n}`),
      (error) => say(`unreadable ${error.code}`),
    );
    process.exit(0);
    break;
  case "group-commit": {
    // Written one by one; the text is in the log as it is. The table is larger than PostgreSQL's buffers, all of which hold pages
    // that are not in its file yet: so most updates make it write a page of the table.
    const updates = 200;
    await engine.query("CREATE TABLE marks (n int4 PRIMARY KEY, mark text, filler text)");
    await engine.query("INSERT INTO marks SELECT n, '', repeat('x', 1900) FROM generate_series(1, 60 * $1::int4) AS n", [updates]);
    const update = "UPDATE marks SET mark = $2 WHERE n = $1";
    say("begin");
    await Promise.all(
      Array.from({ length: updates }, async (_, i) => {
        const mark = `mark-${String(i + 1).padStart(3, "0")}`;
        await engine.query(update, [1 + 60 * i, mark], { isRepeated: true });
        say(`acknowledged ${mark}`);
        // What may not be put off: each needs the commits before it on the disk.
        if (i % 50 === 25) await engine.query("CHECKPOINT");
        if (i % 50 === 30) await engine.query("CREATE TABLE made AS SELECT 1 AS one; DROP TABLE made");
      }),
    );
    await engine.close();
    process.exit(0);
    break;
  }
  case "group-growth": {
    // Four rows a page: every fourth makes the table longer.
    await engine.query("CREATE TABLE grown (mark text, filler text)");
    say("begin");
    await Promise.all(
      Array.from({ length: 100 }, async (_, i) => {
        const mark = `mark-${String(i + 1).padStart(3, "0")}`;
        await engine.query("INSERT INTO grown VALUES ($1, repeat('x', 1900))", [mark], { isRepeated: true });
        say(`acknowledged ${mark}`);
      }),
    );
    await engine.close();
    process.exit(0);
    break;
  }
  case "count-syncs":
    for (let i = 0; i < 30; i++) await insert();
    await engine.close();
    process.exit(0);
}
