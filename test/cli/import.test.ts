import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runCommand } from "../support/server.ts";
import { useImportServer } from "./import-server.ts";

const at = useImportServer();
const { folder, importFile, records, count } = at;

const file = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const untilCount = async (table: string, least: number): Promise<void> => {
  while ((await count(table)) < least) await new Promise((resolve) => setTimeout(resolve, 10));
};
const journals = () => readdirSync(folder).filter((name) => name.startsWith(".lodestone-import-"));

describe("JSON Lines", () => {
  it("creates the table with suitable columns, and keeps the ids", async () => {
    const rows = [
      { id: "a", s: "text", n: 1, f: 1.5, b: true, d: "2024-01-02T03:04:05Z", tags: ["x", "y"], v: [0.5, 1, 2] },
      { id: "b", s: "ü", n: null, f: 2, b: false, d: null, tags: [], v: null },
    ];
    const path = file("typed.jsonl", `\ufeff${rows.map((row) => JSON.stringify(row)).join("\n")}\n\n`);
    const result = await importFile(path, "typed", "--create");
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("2 records imported into i:main/typed") });
    expect((await at.server.get("/db/i:main/tables/typed/schema")).body.columns).toMatchObject([
      { name: "s", type: "string" },
      { name: "n", type: "int" },
      { name: "f", type: "float" },
      { name: "b", type: "bool" },
      { name: "d", type: "datetime" },
      { name: "tags", type: "multiple" },
      { name: "v", type: "vector", vector: { dimension: 3 } },
    ]);
    expect(await records("typed")).toMatchObject([
      { id: "a", s: "text", n: 1, f: 1.5, b: true, tags: ["x", "y"], v: [0.5, 1, 2] },
      { id: "b", s: "ü", f: 2, b: false, tags: [] },
    ]);
    expect(journals()).toEqual([]);
  });

  it("gives the same when it is imported twice: records with ids replace themselves", async () => {
    const path = file("twice.jsonl", '{"id": "a", "n": 1}\n{"id": "b", "n": 2}');
    await importFile(path, "twice", "--create");
    await importFile(path, "twice");
    expect(await count("twice")).toBe(2);
  });

  it("generates ids in the order of the lines for records without one", async () => {
    const path = file("noids.jsonl", Array.from({ length: 30 }, (_, n) => `{"n": ${n}}`).join("\n"));
    expect((await importFile(path, "noids", "--create")).code).toBe(0);
    const found = await records("noids");
    expect(found.map(({ n }: { n: number }) => n)).toEqual(Array.from({ length: 30 }, (_, n) => n));
    for (const { id } of found) expect(id).toMatch(/^rec_[0-9a-v]{20}$/);
  });

  it.each([
    ["not JSON", '{"n": 1}\n{"n": 2\n{"n": 3}', "line 2: not valid JSON"],
    ["no object", '{"n": 1}\n\n[1]', "line 3: expected a JSON object, got an array"],
    ["a value of the wrong type", '{"n": 1}\n{"n": 2}\n\n{"n": "x"}', /line 4: .*n/],
    ["an unknown column", '{"n": 1}\n{"m": 2}', /line 2: .*m/],
    [
      "not UTF-8",
      Buffer.concat([Buffer.from('{"n": 1}\n{"s": "'), Buffer.from([0xff]), Buffer.from('"}')]),
      "line 2, byte 16: 0xff is not text in UTF-8",
    ],
  ])("a line that is %s is named, and nothing of its batch is imported", async (name, content, message) => {
    const table = `faulty-${name.replaceAll(" ", "-")}`;
    await at.server.put(`/db/i:main/tables/${table}`, { columns: [{ name: "n", type: "int" }] });
    const path = file(`${table}.jsonl`, content);
    const result = await importFile(path, table);
    expect(result.code).toBe(1);
    if (typeof message === "string") expect(result.stderr).toContain(message);
    else expect(result.stderr).toMatch(message);
    expect(result.stderr).not.toMatch(/\n\s+at /);
    expect(await count(table)).toBe(0);
  });

  it("imports the batches before the fault; a corrected file is another file and starts over", async () => {
    await at.server.put("/db/i:main/tables/mended", { columns: [{ name: "n", type: "int" }] });
    const lines = Array.from({ length: 20 }, (_, n) => `{"id": "${n}", "n": ${n}}`);
    const path = file("mended.jsonl", [...lines.slice(0, 15), '{"n": "x"}', ...lines.slice(16)].join("\n"));
    expect(await importFile(path, "mended", "--batch", "5")).toMatchObject({ code: 1, stderr: expect.stringContaining("line 16") });
    expect(await count("mended")).toBe(15);
    expect(journals()).toHaveLength(1);
    file("mended.jsonl", lines.join("\n"));
    const again = await importFile(path, "mended", "--batch", "5");
    expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("20 records imported") });
    expect(await count("mended")).toBe(20);
    expect(journals()).toEqual([]);
  });
});

describe("a text in another encoding", () => {
  const ROWS = 1_200;
  /** `last` in latin1; all before it is ASCII. */
  const rows = (row: (n: number) => string, last: string): Buffer =>
    Buffer.concat([Buffer.from(Array.from({ length: ROWS }, (_, n) => `${row(n)}\n`).join("")), Buffer.from(last, "latin1")]);

  it.each([
    ["csv", "id,s\n", (n: number) => `r${n},x`, "last,caf\u00e9 \u0080\n"],
    ["jsonl", "", (n: number) => `{"id":"r${n}","s":"x"}`, '{"id":"last","s":"caf\u00e9 \u0080"}\n'],
  ])("%s is refused before anything is written, with its place, and read when it is named", async (format, header, row, last) => {
    const table = `encoded_${format}`;
    const content = Buffer.concat([Buffer.from(header), rows(row, last)]);
    const path = file(`${table}.${format}`, content);
    const line = ROWS + (header === "" ? 1 : 2);
    const byte = content.indexOf(0xe9).toLocaleString("en-US");
    expect(await importFile(path, table, "--create")).toMatchObject({
      code: 1,
      stderr: `lodestone: ${path}, line ${line}, byte ${byte}: 0xe9 is not text in UTF-8. If the file is in another encoding, name it with --encoding: latin1, windows-1252 or utf-16le.\n`,
    });
    expect((await at.server.get(`/db/i:main/tables/${table}/schema`)).status).toBe(404);
    for (const [encoding, read] of [
      ["windows-1252", "caf\u00e9 \u20ac"],
      ["latin1", "caf\u00e9 \u0080"],
    ] as const) {
      expect(await importFile(path, table, "--create", "--encoding", encoding)).toMatchObject({ code: 0 });
      expect(await count(table)).toBe(ROWS + 1);
      expect((await at.server.get(`/db/i:main/tables/${table}/data/last`)).body.s).toBe(read);
    }
  });

  it("is UTF-16 when the file begins with its mark", async () => {
    const path = file("marked.csv", Buffer.from("\ufeffid,s\na,caf\u00e9 \u{1f600}\n", "utf16le"));
    expect(await importFile(path, "marked", "--create")).toMatchObject({ code: 0 });
    expect(await records("marked")).toMatchObject([{ id: "a", s: "caf\u00e9 \u{1f600}" }]);
  });
});

describe("a file with very many columns", () => {
  it.each([
    ["csv", `${Array.from({ length: 100_000 }, (_, i) => `c${i}`).join(",")}\n`, "line 1: has 100,000 columns; at most 2,000 are possible"],
    [
      "jsonl",
      `${JSON.stringify(Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`c${i}`, i])))}\n`,
      "line 1: the records up to here have more than 2,000 columns",
    ],
  ])("%s is refused before anything is written", async (format, content, message) => {
    expect(await importFile(file(`wide.${format}`, content), "wide", "--create")).toMatchObject({
      code: 1,
      stderr: `lodestone: ${message}\n`,
    });
    expect((await at.server.get("/db/i:main/tables/wide/schema")).status).toBe(404);
  });
});

describe("csv", () => {
  it("reads an empty cell of a notNull column as its default, or as the empty text", async () => {
    const columns = [
      { name: "title", type: "string", notNull: true },
      { name: "plan", type: "string", notNull: true, defaultValue: "free" },
      { name: "stars", type: "int", notNull: true, defaultValue: "3" },
      { name: "note", type: "string" },
    ];
    await at.server.put("/db/i:main/tables/not-null", { columns });
    const path = file("not-null.csv", 'id,title,plan,stars,note\na,,,,\nb,"","","",""\nc,Title,paid,5,note\n');
    expect((await importFile(path, "not-null")).stderr).not.toContain("line");
    expect((await records("not-null")).map(({ xata: _, ...record }: { xata: unknown }) => record)).toEqual([
      { id: "a", title: "", plan: "free", stars: 3 },
      { id: "b", title: "", plan: "", stars: 3, note: "" },
      { id: "c", title: "Title", plan: "paid", stars: 5, note: "note" },
    ]);
    await at.server.put("/db/i:main/tables/no-default", { columns: [{ name: "n", type: "int", notNull: true }] });
    const refused = await importFile(file("no-default.csv", "id,n\na,1\nb,\n"), "no-default");
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/line 3.*notNull/) });
    expect(await count("no-default")).toBe(0);
  });

  it("uses the table's types, and reads quotes, empty cells and both kinds of line ends", async () => {
    const columns = [
      { name: "s", type: "string" },
      { name: "n", type: "int" },
      { name: "f", type: "float" },
      { name: "b", type: "bool" },
      { name: "tags", type: "multiple" },
      { name: "v", type: "vector", vector: { dimension: 2 } },
    ];
    await at.server.put("/db/i:main/tables/csv", { columns });
    const path = file(
      "typed.csv",
      '\ufeffkey,s,n,f,b,tags,v\r\na,"say ""hi"",\nthere",1,1.5,true,"[""x"",""y""]","[1, 2]"\nb,"",,,,,1;2.5\r\n\r\nc,,9,-2e3,f,[],{3 4}\n',
    );
    expect(await importFile(path, "csv", "--id-column", "key")).toMatchObject({ code: 0, stdout: expect.stringContaining("3 records") });
    expect(await records("csv")).toMatchObject([
      { id: "a", s: 'say "hi",\nthere', n: 1, f: 1.5, b: true, tags: ["x", "y"], v: [1, 2] },
      { id: "b", s: "", v: [1, 2.5] },
      { id: "c", n: 9, f: -2000, b: false, tags: [], v: [3, 4] },
    ]);
    expect((await records("csv"))[2].s ?? null).toBeNull();
  });

  it("creates the table with columns that fit the cells", async () => {
    const path = file(
      "inferred.csv",
      'id,n,f,b,v,s,t,u\n1,5,0.5,true,"[1,2,3]",x,2024-02-29T12:00:00Z,2026-02-30T12:00:00Z\n2,6,7,false,"[4,5,6]",y,2024-02-29T12:00:00+23:00,z\n',
    );
    expect((await importFile(path, "inferred", "--create")).code).toBe(0);
    expect((await at.server.get("/db/i:main/tables/inferred/schema")).body.columns).toMatchObject([
      { name: "n", type: "int" },
      { name: "f", type: "float" },
      { name: "b", type: "bool" },
      { name: "v", type: "vector", vector: { dimension: 3 } },
      { name: "s", type: "string" },
      { name: "t", type: "datetime" },
      // There is no 30 February.
      { name: "u", type: "string" },
    ]);
    expect(await records("inferred")).toMatchObject([
      { id: "1", n: 5, f: 0.5, b: true, v: [1, 2, 3], s: "x" },
      { id: "2", n: 6, f: 7, b: false, v: [4, 5, 6], s: "y" },
    ]);
  });

  it.each([
    ["a cell of the wrong type", "n\n1\nx\n", 'line 3: n: expected a number, got "x"'],
    ["a surplus cell", "n\n1\n2,3\n", "line 3"],
    ["a quote that does not end", 'n,m\n1,2\n"3,4\n', "line"],
    ["a column without name", "n,,m\n1,2,3\n", "line 1: column 2 has no name"],
    ["a column twice", "n,n\n1,2\n", 'line 1: the column "n" appears twice'],
    ["nothing at all", "", "is empty"],
  ])("%s is reported with its line", async (name, content, message) => {
    const table = `csv-${name.replaceAll(" ", "-")}`;
    await at.server.put(`/db/i:main/tables/${table}`, { columns: [{ name: "n", type: "int" }] });
    expect(await importFile(file(`${table}.csv`, content), table)).toMatchObject({ code: 1, stderr: expect.stringContaining(message) });
    expect(await count(table)).toBe(0);
  });
});

describe("vector files", () => {
  const vectors = [
    [1.5, -2, 3],
    [4, 5, 6],
    [7, 8, 9.25],
  ];
  const fvecs = (rows: number[][]) =>
    Buffer.concat(
      rows.map((row) => Buffer.concat([Buffer.from(new Int32Array([row.length]).buffer), Buffer.from(new Float32Array(row).buffer)])),
    );
  const bvecs = (rows: number[][]) =>
    Buffer.concat(rows.map((row) => Buffer.concat([Buffer.from(new Int32Array([row.length]).buffer), Buffer.from(row)])));
  function npy(type: string, shape: string, data: Uint8Array, version = 1): Buffer {
    const header = `{'descr': '${type}', 'fortran_order': False, 'shape': ${shape}, }`;
    const prefix = version === 1 ? 10 : 12;
    const padded = `${header.padEnd(Math.ceil((prefix + header.length + 1) / 64) * 64 - prefix - 1)}\n`;
    const length = Buffer.alloc(version === 1 ? 2 : 4);
    if (version === 1) length.writeUInt16LE(padded.length);
    else length.writeUInt32LE(padded.length);
    return Buffer.concat([Buffer.from("\x93NUMPY", "latin1"), Buffer.from([version, 0]), length, Buffer.from(padded, "latin1"), data]);
  }
  const flat = vectors.flat();

  it.each([
    ["v.fvecs", fvecs(vectors), vectors],
    [
      "v.bvecs",
      bvecs([
        [0, 1, 255],
        [4, 5, 6],
      ]),
      [
        [0, 1, 255],
        [4, 5, 6],
      ],
    ],
    ["f4.npy", npy("<f4", "(3, 3)", Buffer.from(new Float32Array(flat).buffer)), vectors],
    ["f8.npy", npy("<f8", "(3, 3)", Buffer.from(new Float64Array(flat).buffer), 2), vectors],
    [
      "u1.npy",
      npy("|u1", "(2, 3)", Buffer.from([1, 2, 3, 4, 5, 255])),
      [
        [1, 2, 3],
        [4, 5, 255],
      ],
    ],
    [
      "i2.npy",
      npy("<i2", "(2, 2)", Buffer.from(new Int16Array([-1, 2, 3, 300]).buffer)),
      [
        [-1, 2],
        [3, 300],
      ],
    ],
  ])("%s goes in with the numbers of its vectors as ids", async (name, content, expected) => {
    const table = name.replace(".", "-");
    const result = await importFile(file(name, content), table, "--create", "--vector-column", "vec", "--id-prefix", "v");
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining(`${expected.length} records`) });
    expect(await records(table)).toMatchObject(expected.map((vec, i) => ({ id: `v${i}`, vec })));
  });

  it.each([
    ["cut.fvecs", fvecs(vectors).subarray(0, -3), "not a multiple"],
    [
      "mixed.bvecs",
      bvecs(
        [
          [1, 2, 3],
          [1, 2, 3],
          [1, 2],
        ].slice(0, 2),
      ).fill(9, 7, 8),
      "vector 1: has dimension",
    ],
    ["text.fvecs", "hello, this is text", "not a file of fvecs"],
    ["text.npy", "hello, this is text", "is not an npy file"],
    ["short.npy", npy("<f4", "(4, 3)", Buffer.from(new Float32Array(flat).buffer)), "by its header it should have"],
    ["big.npy", npy(">f4", "(3, 3)", Buffer.from(new Float32Array(flat).buffer)), 'has the type ">f4"'],
    ["flat.npy", npy("<f4", "(9,)", Buffer.from(new Float32Array(flat).buffer)), "no shape (rows, dimension)"],
    ["empty.fvecs", "", "is empty"],
  ])("%s is refused with a sentence", async (name, content, message) => {
    expect(await importFile(file(name, content), "refused", "--create")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(message),
    });
  });

  it("a dimension that is not the column's is reported before anything is sent", async () => {
    await at.server.put("/db/i:main/tables/dim", { columns: [{ name: "embedding", type: "vector", vector: { dimension: 4 } }] });
    const result = await importFile(file("dim.fvecs", fvecs(vectors)), "dim");
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('dimension 3; the column "embedding" has dimension 4') });
    expect(await count("dim")).toBe(0);
  });
});

describe("an import", () => {
  it("that is interrupted stops cleanly, and continues where it stopped", async () => {
    const total = 6000;
    const path = file("long.jsonl", Array.from({ length: total }, (_, n) => `{"n": ${n}}`).join("\n"));
    await at.server.put("/db/i:main/tables/long", { columns: [{ name: "n", type: "int", unique: true }] });
    const first = await runCommand(["import", path, "i:main/long", "--url", at.server.url, "--batch", "20"], {}, (child) => {
      void untilCount("long", 100).then(() => child.kill("SIGINT"));
    });
    expect(first).toMatchObject({ code: 130, stdout: expect.stringContaining("run the same command again") });
    const sofar = await count("long");
    expect(sofar).toBeGreaterThanOrEqual(100);
    expect(sofar).toBeLessThan(total);
    expect(Number(first.stdout.split(" ")[0]?.replaceAll(",", ""))).toBe(sofar);
    const second = await importFile(path, "long");
    expect(second).toMatchObject({ code: 0, stderr: expect.stringContaining(`Continuing after record ${sofar.toLocaleString("en-US")}`) });
    // Every n once: the column is unique, and none is missing.
    expect(await count("long")).toBe(total);
    expect(journals()).toEqual([]);
  });

  it("that is killed continues too, and doubles nothing", async () => {
    const total = 4000;
    const path = file("killed.jsonl", Array.from({ length: total }, (_, n) => `{"n": ${n}}`).join("\n"));
    await at.server.put("/db/i:main/tables/killed", { columns: [{ name: "n", type: "int" }] });
    const first = await runCommand(["import", path, "i:main/killed", "--url", at.server.url, "--batch", "20"], {}, (child) => {
      void untilCount("killed", 100).then(() => child.kill("SIGKILL"));
    });
    expect(first.code).toBeNull();
    expect((await importFile(path, "killed")).code).toBe(0);
    const distinct = await at.server.post("/db/i:main/sql", {
      statement: 'SELECT count(*)::int AS n, count(DISTINCT "n")::int AS d FROM "killed"',
    });
    expect(distinct.body.records).toEqual([{ n: total, d: total }]);
  });

  it("needs little memory whatever the size of the file", async () => {
    // Lines of which the server keeps few bytes each: only the importer's own memory is measured.
    const padding = "x".repeat(60_000);
    const path = file("large.jsonl", Array.from({ length: 3000 }, (_, n) => `{"id": "${n}", "s": "${padding}"}`).join("\n"));
    await at.server.put("/db/i:main/tables/large", { columns: [{ name: "s", type: "text" }] });
    // The process reports the most that it held, without what is garbage.
    const report = `import { setFlagsFromString } from "node:v8";
      import { runInNewContext } from "node:vm";
      setFlagsFromString("--expose-gc");
      const collect = runInNewContext("gc");
      let most = 0;
      const look = () => {
        collect();
        const { heapUsed, external } = process.memoryUsage();
        most = Math.max(most, heapUsed + external);
      };
      setInterval(look, 100).unref();
      process.on("exit", () => console.error("held", most, "bytes"));`;
    const { stderr } = await runCommand(["import", path, "i:main/large", "--url", at.server.url], {
      NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(report)}`,
    });
    expect(await count("large")).toBe(3000);
    const held = Number(/^held (\d+) bytes$/m.exec(stderr)?.[1]);
    expect(held).toBeGreaterThan(0);
    // The file is 180 MB; the program takes 30, and batches in flight.
    expect(held).toBeLessThan(100e6);
  });

  it("names what is missing", async () => {
    const path = file("missing.jsonl", '{"n": 1}');
    expect(await importFile(path, "nothing")).toMatchObject({ code: 1, stderr: expect.stringContaining("--create") });
    expect(await importFile(join(folder, "none.jsonl"), "t")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("There is no file"),
    });
    expect(await importFile(file("x.parquet", "x"), "t")).toMatchObject({ code: 1, stderr: expect.stringContaining("--format") });
    expect(await runCommand(["import", path, "i/t", "--url", at.server.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("{database}:{branch}/{table}"),
    });
    expect(await runCommand(["import", path, "nodb:main/t", "--url", at.server.url])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nodb"),
    });
  });
});
