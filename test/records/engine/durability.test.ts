import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { openEngine } from "../../../src/records/engine/open-engine.ts";
import { describeWith } from "../../support/requirements.ts";

const CHILD = fileURLToPath(new URL("./crash-child.mjs", import.meta.url));

describeWith("strace", "durability of the embedded engine", (strace) => {
  test("the write-ahead log is fsynced between a commit's request and its acknowledgement, every time", async () => {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-durability-"));
    try {
      await (await openEngine({ dataDir })).close();
      const trace = join(dataDir, "trace");
      // -y shows the path of each descriptor. The child writes "inserted n" once it has the acknowledgement.
      execFileSync(
        strace,
        ["-f", "-y", "-e", "trace=fsync,fdatasync,write,pwrite64", "-o", trace, process.execPath, CHILD, "count-syncs", dataDir],
        {
          stdio: "ignore",
        },
      );
      const events = readFileSync(trace, "utf8")
        .split("\n")
        .flatMap((line) => {
          if (/ fsync\(\d+<[^>]*\/pg_wal\/[^>]*>\)\s+= 0/.test(line) || /resumed>\)\s+= 0/.test(line)) return ["synced"];
          if (/ pwrite64\(\d+<[^>]*\/pg_wal\//.test(line)) return ["written"];
          const said = /write\(1<[^>]*>, "inserted (\d+)\\n"/.exec(line);
          return said === null ? [] : [`inserted ${said[1]}`];
        });
      const acknowledged = events.filter((event) => event.startsWith("inserted"));
      expect(acknowledged.length).toBe(30);
      for (let i = 0; i < acknowledged.length; i++) {
        const from = i === 0 ? 0 : events.indexOf(acknowledged[i - 1]!);
        const between = events.slice(from, events.indexOf(acknowledged[i]!));
        // The log is written, and then synced, before anybody learns of the commit.
        expect(between).toContain("written");
        expect(between.lastIndexOf("synced")).toBeGreaterThan(between.lastIndexOf("written"));
      }
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });

  test("commits that come together share a sync, and nobody is answered, nor another file touched, before it", async () => {
    const { faults, acknowledged, synced, shared, changesOfOthers } = await traceGroupCommit(strace, "group-commit");
    expect(faults).toEqual([]);
    expect(acknowledged).toBe(200);
    // Of 200, without those that lie on the border of two pages of the log.
    expect(synced).toBeGreaterThan(150);
    expect(changesOfOthers).toBeGreaterThan(50);
    // How many come together depends on how busy the machine is: `npm run bench:load -- --only inserts` counts.
    expect(shared).toBeGreaterThan(0);
  });

  test("a table that grows by empty pages does not end the wait for a sync", async () => {
    const { faults, acknowledged, grownMeanwhile } = await traceGroupCommit(strace, "group-growth");
    expect(faults).toEqual([]);
    expect(acknowledged).toBe(100);
    expect(grownMeanwhile).toBeGreaterThan(0);
  });

  test.each([
    ["EINVAL", "a file system without fsync is used as it is"],
    ["EIO", "a sync that fails ends the session, and what waited for it is not acknowledged"],
  ])("%s: %s", async (fault) => {
    const dataDir = mkdtempSync(join(tmpdir(), "lodestone-durability-"));
    try {
      await (await openEngine({ dataDir })).close();
      const log = join(dataDir, "postgres", "pg_wal");
      // Those that are there, and the next ones.
      const segments = [1, 2, 3, 4].flatMap((n) => ["-P", join(log, `00000001${String(n).padStart(16, "0")}`)]);
      const trace = ["-f", ...segments, "-e", "trace=fsync", "-e", `inject=fsync:error=${fault}:when=20+`, "-o", join(dataDir, "trace")];
      const { status, stdout, stderr } = spawnSync(strace, [...trace, process.execPath, CHILD, "group-commit", dataDir], {
        encoding: "utf8",
      });
      expect(readFileSync(join(dataDir, "trace"), "utf8")).toContain("INJECTED");
      const acknowledged = [...stdout.matchAll(/acknowledged (mark-\d{3})/g)].map(([, mark]) => mark!);
      if (fault === "EINVAL") {
        expect([status, acknowledged.length]).toEqual([0, 200]);
        return;
      }
      expect(status).not.toBe(0);
      // Said by the sync that was put off, or by PostgreSQL, whichever came to be the twentieth.
      expect(stderr).toMatch(/PostgreSQL stopped: .*(?:EIO|I\/O error)/);
      expect(acknowledged.length).toBeLessThan(200);
      const engine = await openEngine({ dataDir });
      const { rows } = await engine.query<{ mark: string }>("SELECT mark FROM marks WHERE mark <> ''");
      await engine.close();
      const there = new Set(rows.map(({ mark }) => mark));
      expect(acknowledged.filter((mark) => !there.has(mark))).toEqual([]);
    } finally {
      rmSync(dataDir, { recursive: true, force: true });
    }
  });
});

/** What a child did to the disk, and when it said that something is there; the texts of its records are in the log as they are. */
async function traceGroupCommit(strace: string, mode: string) {
  const dataDir = mkdtempSync(join(tmpdir(), "lodestone-durability-"));
  try {
    await (await openEngine({ dataDir })).close();
    const trace = join(dataDir, "trace");
    const calls = "fsync,write,pwrite64,rename,unlink,ftruncate";
    execFileSync(strace, ["-f", "-y", "-s", "9000", "-e", `trace=${calls}`, "-o", trace, process.execPath, CHILD, mode, dataDir], {
      stdio: "ignore",
    });
    const lines = readFileSync(trace, "latin1").split("\n");
    const result = { shared: 0, acknowledged: 0, synced: 0, changesOfOthers: 0, grownMeanwhile: 0, faults: [] as string[] };
    /** Marks in the log that are not synced yet, and those that are. */
    const written = new Set<string>();
    const synced = new Set<string>();
    for (const line of lines.slice(lines.findIndex((one) => one.includes('"begin')))) {
      const isLog = line.includes("/postgres/pg_wal/");
      if (isLog && line.includes(" pwrite64(")) {
        for (const [mark] of line.matchAll(/mark-\d{3}/g)) if (!synced.has(mark)) written.add(mark);
      } else if ((isLog && / fsync\(.*= 0$/.test(line)) || /fsync resumed>\)\s+= 0/.test(line)) {
        // Only the thread of the database syncs anything meanwhile.
        if (written.size > 1) result.shared++;
        for (const mark of written) synced.add(mark);
        written.clear();
      } else if (/ pwrite64\(\d+<[^>]*\/postgres\/base\/[^>]*>, "(?:\\0)+", 8192, /.test(line)) {
        // A file that grows by an empty page rests on nothing that was logged.
        if (written.size > 0) result.grownMeanwhile++;
      } else if (/ (?:pwrite64|ftruncate)\(\d+<[^>]*\/postgres\/| (?:rename|unlink)\("[^"]*\/postgres\//.test(line)) {
        result.changesOfOthers++;
        if (written.size > 0) result.faults.push(`${line.slice(0, 100)} before ${[...written]} are synced`);
      }
      const [, mark] = /write\(1<[^>]*>, "acknowledged (mark-\d{3})/.exec(line) ?? [];
      if (mark === undefined) continue;
      result.acknowledged++;
      if (written.has(mark)) result.faults.push(`${mark} was acknowledged before it was synced`);
    }
    return { ...result, synced: synced.size };
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
