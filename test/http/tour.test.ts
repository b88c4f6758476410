import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startServer, type TestServer } from "../support/server.ts";

/**
 * Runs the commands of docs/quick-start.md as a reader would paste them (with the port of the server under
 * test), and checks their output.
 */

const run = promisify(execFile);
const read = (path: string) => readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8");

/**
 * The shell commands of a text. Each begins on a line of its own with the command's name, and continues over
 * lines that it leaves open.
 */
function commandsOf(markdown: string): string[] {
  const blocks = [...markdown.matchAll(/```sh\n([\s\S]*?)```/g)].map((match) => match[1] as string);
  return blocks.flatMap((block) => block.split(/\n(?=(?:curl|npm) )/)).map((command) => command.trim());
}

const TOUR = read("docs/quick-start.md");

describe("the tour", () => {
  let server: TestServer;
  const answers: { command: string; text: string }[] = [];

  beforeAll(async () => {
    server = await startServer({ args: ["--demo"] });
    for (const command of commandsOf(TOUR).filter((candidate) => candidate.startsWith("curl"))) {
      const { stdout } = await run("bash", ["-c", command.replaceAll("localhost:8787", `localhost:${server.port}`)]);
      answers.push({ command, text: stdout });
    }
  });
  afterAll(() => server?.stop());

  const answer = (n: number) => JSON.parse((answers[n] as { text: string }).text);
  const ids = (n: number) => answer(n).results.map(({ id }: { id: string }) => id);

  it("begins with the command that starts the server with the demo", () => {
    expect(commandsOf(TOUR)[0]).toBe("npm start -- --demo");
  });

  it("finds the colours nearest to rebeccapurple, judged by eye: purples", () => {
    expect(answer(0).totalCount).toBe(148);
    expect(ids(0)[0]).toBe("rebeccapurple");
    expect(answer(0).results[0]).toMatchObject({ score: 1, record: { hex: "#663399" } });
    expect(ids(0).slice(1)).toEqual(["indigo", "darkslateblue", "slateblue", "purple"]);
  });

  it("finds dark blues by direction", () => {
    expect(ids(1)).toHaveLength(3);
    expect(answer(1).totalCount).toBeLessThan(20);
    for (const { id } of answer(1).results)
      expect(["slateblue", "darkslateblue", "blue", "mediumblue", "darkblue", "navy", "midnightblue", "royalblue"]).toContain(id);
  });

  it("finds by l1", () => {
    expect(ids(2)[0]).toBe("rebeccapurple");
    expect(ids(2)).toHaveLength(3);
  });

  it("makes a branch, a table and records", () => {
    expect(answer(3)).toEqual({ databaseName: "tour", branchName: "main", status: "completed" });
    expect(answer(4)).toMatchObject({ tableName: "films", status: "completed" });
    expect(answer(5)).toMatchObject({ id: "alien", xata: { version: 0 } });
    expect(answer(6).recordIDs).toHaveLength(3);
  });

  it("searches them with a filter", () => {
    const { totalCount, results } = answer(7);
    expect(totalCount).toBe(3);
    expect(results.map(({ record }: { record: { title: string } }) => record.title)).toEqual(["Alien", "The Thing", "Airplane!"]);
  });

  it("queries them, and asks in SQL", () => {
    expect(answer(8).records.map(({ title }: { title: string }) => title)).toEqual(["Amélie", "Airplane!", "Alien"]);
    expect(answer(9).records).toEqual([
      { title: "The Thing", year: 1982 },
      { title: "Amélie", year: 2001 },
    ]);
  });

  it("deletes in all three ways", () => {
    expect(answer(10)).toMatchObject({ id: "alien", title: "Alien" });
    expect(answer(11)).toMatchObject({ rowCount: 1 });
    expect(answer(12).results).toMatchObject([
      { operation: "insert", id: "brazil", rows: 1 },
      { operation: "delete", rows: 1, columns: { title: "Brazil" } },
    ]);
  });

  it("shows what an error looks like", () => {
    expect(answer(13)).toEqual({ id: expect.any(String), code: "INVALID", message: expect.stringMatching(/2 elements.*dimension 3/) });
    expect(answers).toHaveLength(14);
  });
});
