/** What goes wrong in the background is said once, with its cause, and once more when it is over. */
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BranchFaults } from "../../src/search/branch-faults.ts";
import { item, REF, snapshotStore } from "./snapshot-store.ts";

test("a reason that several branches have is said once, and its end when the last of them works", () => {
  const said: string[] = [];
  const faults = new BranchFaults("Following", {
    onFault: (error) => said.push((error as Error).message),
    onRecovery: (sentence) => said.push(sentence),
  });
  for (let n = 0; n < 3; n++) for (const key of ["a:main", "b:main"]) faults.failed(key, new Error("no disk"));
  faults.failed("c:main", new Error("no network"));
  faults.works("a:main");
  expect([faults.reasonOf("a:main"), faults.reasonOf("b:main")]).toEqual([undefined, "no disk"]);
  expect(said).toEqual(["no disk", "no network"]);
  faults.works("b:main");
  faults.works("b:main");
  expect(said).toEqual(["no disk", "no network", "Following works again. It had failed: no disk"]);
  faults.failed("a:main", new Error("no disk"));
  expect(said).toHaveLength(4);
  faults.close();
  faults.failed("b:main", new Error("closed"));
  expect(said).toHaveLength(4);
});

describe("faults of a search store", () => {
  const at = snapshotStore();

  test("snapshots that cannot be written are told once, and so is the first that can", async () => {
    await at.store.close();
    for (const file of readdirSync(at.directory)) rmSync(join(at.directory, file));
    const away = `${at.directory}-away`;
    renameSync(at.directory, away);
    // Not a folder: nothing can be written below it, by root neither.
    writeFileSync(at.directory, "");
    const recoveries: string[] = [];
    await at.open({ snapshotEveryMs: 20, onRecovery: (sentence) => recoveries.push(sentence) });
    try {
      await expect.poll(() => at.faults.length).toBeGreaterThan(0);
      // Several more attempts.
      for (let n = 0; n < 5; n++) {
        at.records.write(REF, "items", [item(n, { title: `t${n}` })]);
        await at.answers();
      }
    } finally {
      rmSync(at.directory);
      renameSync(away, at.directory);
    }
    await expect.poll(() => recoveries).toContainEqual(expect.stringMatching(/^Writing search snapshots works again\. It had failed: E/));
    expect(existsSync(at.snapshotFile())).toBe(true);
    const told = at.faults.map(({ message }) => message);
    expect(new Set(told).size).toBe(told.length);
  });

  test("a round that only a search asked for says why it fails, to the search and in the log", async () => {
    await at.store.close();
    const recoveries: string[] = [];
    await at.open({ waitMs: 300, pollMs: 3_600_000, onRecovery: (sentence) => recoveries.push(sentence) });
    await at.ready();
    at.records.beforeRead = () => Promise.reject(new Error("the disk is on fire"));
    const search = () =>
      at.store
        .vectorSearch(REF, "items", { column: "v", queryVector: [1, 2, 3], consistency: "strong" })
        .then(String, (error: Error) => error.message);
    const answers = [await search()];
    await expect.poll(() => at.faults.map(({ message }) => message)).toEqual(["the disk is on fire"]);
    for (let n = 0; n < 2; n++) answers.push(await search());
    expect(answers[0]).toMatch(/^The search store is still reading branch db:main/);
    expect(answers.slice(1)).toEqual(
      Array(2).fill("The search store is still reading branch db:main (the disk is on fire); try again in a moment."),
    );
    expect(at.faults).toHaveLength(1);
    at.records.beforeRead = () => {};
    await expect.poll(() => recoveries).toEqual(["Following the records works again. It had failed: the disk is on fire"]);
  });
});
