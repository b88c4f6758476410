import { execFileSync } from "node:child_process";
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
});
