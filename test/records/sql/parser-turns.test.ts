/** Callers take turns at the statement parser, which is one thread. */
import { describe, expect, test } from "vitest";
import { analyseStatement } from "../../../src/records/sql/parser.ts";

/** Different ones, since equal ones are parsed once. Each is long enough to take its caller some time. */
const long = (n: number): string => `SELECT ${n} WHERE 1 IN (${"1,".repeat(30_000)}1)`;

describe("the statement parser", () => {
  test("one caller's statements delay another's by one of them", async () => {
    const ended: string[] = [];
    const heavy = Array.from({ length: 6 }, (_, i) => analyseStatement(long(i), { caller: "heavy" }).then(() => ended.push("heavy")));
    const polite = analyseStatement("SELECT 1 AS polite", { caller: "polite" }).then(() => ended.push("polite"));
    await Promise.all([...heavy, polite]);
    expect(ended.indexOf("polite")).toBeLessThanOrEqual(1);
  });

  test("short statements of a caller who has the parser to themselves earn no turns ahead of others", async () => {
    for (let i = 0; i < 20; i++) await analyseStatement(`SELECT ${i} AS short`, { caller: "early" });
    const ended: string[] = [];
    const early = Array.from({ length: 6 }, (_, i) =>
      analyseStatement(`SELECT ${i} AS many`, { caller: "early" }).then(() => ended.push("early")),
    );
    const late = analyseStatement("SELECT 1 AS late", { caller: "late" }).then(() => ended.push("late"));
    await Promise.all([...early, late]);
    expect(ended.indexOf("late")).toBeLessThanOrEqual(1);
  });

  test("a caller who leaves does not wait, and the statement is not parsed", async () => {
    const leaving = new AbortController();
    const gone = new Error("gone");
    const running = analyseStatement(long(100), { caller: "other" });
    const waiting = analyseStatement(long(101), { caller: "leaving", signal: leaving.signal });
    leaving.abort(gone);
    await expect(waiting).rejects.toBe(gone);
    await running;
  });

  test("a statement that breaks the parser is refused, the fault is told, and the next is parsed", async () => {
    const faults: unknown[] = [];
    const broken = analyseStatement(`SELECT ${"1 + ".repeat(120_000)}1`, { caller: "a", onFault: (error) => faults.push(error) });
    const next = analyseStatement('SELECT "id" FROM "t"', { caller: "b" });
    await expect(broken).rejects.toMatchObject({ code: "INVALID", message: expect.stringContaining("nested too deeply") });
    expect(faults).toEqual([
      expect.objectContaining({ message: expect.stringMatching(/parser of SQL statements had to be replaced: .+/) }),
    ]);
    expect(await next).toMatchObject({ tables: ["t"] });
  });
});
