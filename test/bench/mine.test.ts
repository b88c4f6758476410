import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, it } from "vitest";
import { describeWith } from "../support/requirements.ts";

/** `npm run bench:mine` as a user runs it. */

const PROGRAM = fileURLToPath(new URL("../../bench/mine.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "lodestone-mine-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function mine(...args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(process.execPath, [PROGRAM, ...args], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

const values = (rows: number, dimension: number) => Float32Array.from({ length: rows * dimension }, (_, i) => Math.sin(i * i));

function fileOf(name: string, ...parts: (Float32Array | Buffer)[]): string {
  const path = join(folder, name);
  writeFileSync(path, Buffer.concat(parts.map((part) => (Buffer.isBuffer(part) ? part : Buffer.from(part.buffer)))));
  return path;
}

function npy(name: string, vectors: Float32Array, rows: number, dimension: number, type = "<f4"): string {
  const header = `{'descr': '${type}', 'fortran_order': False, 'shape': (${rows}, ${dimension}), }`.padEnd(117);
  const head = Buffer.from("\u0093NUMPY\u0001\0\0\0", "latin1");
  head.writeUInt16LE(118, 8);
  return fileOf(name, head, Buffer.from(`${header}\n`), vectors);
}

function fvecs(name: string, vectors: Float32Array, dimension: number): string {
  const rows = Array.from({ length: vectors.length / dimension }, (_, i) => {
    const row = Buffer.alloc(4 + 4 * dimension);
    row.writeInt32LE(dimension);
    for (let j = 0; j < dimension; j++) row.writeFloatLE(vectors[i * dimension + j]!, 4 + 4 * j);
    return row;
  });
  return fileOf(name, ...rows);
}

function expectFigures({ code, stdout, stderr }: Outcome, size: string): void {
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toMatch(/energy of the first \d+ \/ \d+ \/ \d+ directions/);
  for (const similarity of ["cosineSimilarity", "l2", "l1"]) expect(stdout).toMatch(new RegExp(`${size} +${similarity} +(relaxed|simd) `));
  expect(stdout).toMatch(/queries, per query +(relaxed|simd) /);
}

describe("a valid file", () => {
  it("is searched with queries taken out of it: npy", async () => {
    expectFigures(await mine(npy("right.npy", values(300, 24), 300, 24)), "270 × 24");
  });

  it("is searched with the given queries: fvecs, the first --rows of it", async () => {
    const queries = fvecs("queries.fvecs", values(7, 24), 24);
    expectFigures(await mine(fvecs("right.fvecs", values(100, 24), 24), "--queries", queries, "--rows", "90"), "90 × 24");
  });

  it("is joined with others: f32", async () => {
    const files = [fileOf("a.f32", values(100, 12)), fileOf("b.f32", values(50, 12))];
    expectFigures(await mine(...files, "--dimension", "12", "--top", "3"), "135 × 12");
  });

  it("may hold rows and queries of zeros", async () => {
    const vectors = values(200, 12);
    vectors.fill(0, 0, 12 * 40);
    expectFigures(await mine(fileOf("zeros.f32", vectors), "--dimension", "12"), "180 × 12");
  });
});

describe("faulty input is reported in one line, and nothing is measured", () => {
  const bad = values(20, 12);
  bad[12 * 17 + 5] = Number.NaN;
  const huge = Float64Array.from({ length: 240 }, (_, i) => (i === 15 ? 1e300 : i));

  it.each<[string, () => string[], RegExp]>([
    ["no file", () => [], /expected a file[\s\S]*Usage/],
    ["a missing file", () => [join(folder, "absent.npy")], /absent\.npy: there is no such file/],
    ["a folder", () => [folder], /is not a file/],
    ["an unknown ending", () => [fileOf("vectors.csv", values(2, 2))], /"\.csv"; expected one of \.npy \.fvecs \.bvecs \.f32/],
    ["no npy header", () => [fileOf("noise.npy", values(20, 12))], /noise\.npy: the file: is not an npy file/],
    ["an unknown type", () => [npy("type.npy", values(20, 12), 20, 12, "<c8")], /the npy header: has the type "<c8"/],
    [
      "a truncated npy",
      () => [npy("short.npy", values(19, 12), 20, 12)],
      /short\.npy: the file: has 1040 bytes; by its header it should have 1088/,
    ],
    ["NaN", () => [npy("nan.npy", bad, 20, 12)], /nan\.npy: vector 17, element 5 .* is NaN/],
    ["beyond float32", () => [npy("huge.npy", new Float32Array(huge.buffer), 20, 12, "<f8")], /vector 1, element 3 .* is Infinity/],
    ["f32 without its dimension", () => [fileOf("bare.f32", values(20, 12))], /does not say its dimension; give --dimension/],
    ["f32 of another size", () => [fileOf("odd.f32", values(20, 12)), "--dimension", "7"], /960 bytes, not a multiple of the 28/],
    [
      "queries of another dimension",
      () => [npy("base.npy", values(20, 12), 20, 12), "--queries", npy("q.npy", values(6, 4), 6, 4)],
      /q\.npy: has dimension 4; expected 12/,
    ],
    ["too few rows", () => [npy("few.npy", values(5, 12), 5, 12)], /has 5 vectors, too few to take queries from/],
    ["an empty file", () => [fileOf("empty.f32", new Float32Array(0)), "--dimension", "3"], /holds no vectors/],
    ["a bad number", () => ["x.npy", "--rows", "1e9x"], /--rows: got "1e9x"; expected a whole number/],
    ["an unknown option", () => ["x.npy", "--row", "1"], /'--row'/],
  ])("%s", async (_, args, message) => {
    const { code, stdout, stderr } = await mine(...args());
    expect(stderr).toMatch(message);
    expect(stderr).not.toMatch(/\n +at /);
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  });
});

it("--help shows the usage", async () => {
  expect(await mine("--help")).toMatchObject({ code: 0, stdout: expect.stringContaining("npm run bench:mine -- FILE") });
});

describeWith("bigann10k", "real vectors", (path) => {
  it("bvecs are verified and timed", async () => {
    const outcome = await mine(`${path}base.bvecs`, "--queries", `${path}query.bvecs`, "--rows", "2000");
    expectFigures(outcome, "2000 × 128");
    expect(outcome.stdout).toContain(`100 queries of ${path}query.bvecs`);
  });
});
