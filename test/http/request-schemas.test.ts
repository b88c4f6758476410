import { describe, expect, test } from "vitest";
import type { Endpoint } from "../../src/http/endpoint.ts";
import { queryEndpoints } from "../../src/http/endpoints/query.ts";
import { recordEndpoints } from "../../src/http/endpoints/records.ts";
import { textSearchEndpoints } from "../../src/http/endpoints/text-search.ts";
import { transactionEndpoints } from "../../src/http/endpoints/transaction.ts";
import { COLUMN } from "../../src/http/schemas.ts";
import { compileSchema } from "../../src/http/validation.ts";
import { requireColumn } from "../../src/records/catalog/column-types.ts";

/**
 * What requests about records look like is checked here alone, by the schemas of the endpoints: the record store takes
 * requests of these types, and checks what depends on the table.
 */
const endpoints: readonly Endpoint[] = [
  ...queryEndpoints(),
  ...recordEndpoints(),
  ...textSearchEndpoints({ search: undefined as never }),
  ...transactionEndpoints(),
];
const schemaOf = (name: string) => endpoints.find((endpoint) => endpoint.name === name)!.body!.schema;
const check = (name: string, body: unknown) => compileSchema(schemaOf(name))(body);

const operation = (value: unknown): unknown => ({ operations: [{ get: { table: "t", id: "a" } }, value] });
const many = (count: number, item: unknown): unknown[] => Array.from({ length: count }, () => item);

describe("schemas of requests about records", () => {
  test.each<[string, unknown, string]>([
    ["insertRecord", [], "body: expected an object, got an array of 0 elements"],
    ["insertRecords", {}, "records: is required"],
    ["insertRecords", { records: "a" }, 'records: expected an array, got "a"'],
    ["insertRecords", { records: [{}, []] }, "records[1]: expected an object, got an array of 0 elements"],
    ["insertRecords", { records: many(1001, {}) }, "records: expected at most 1,000 elements, got 1,001"],

    ["queryRecords", { page: 5 }, "page: expected an object, got 5"],
    ["queryRecords", { page: { size: 0 } }, "page.size: expected an integer from 1 to 1,000, got 0"],
    ["queryRecords", { page: { size: 1.5 } }, "page.size: expected an integer from 1 to 1,000, got 1.5"],
    ["queryRecords", { page: { size: 1e9 } }, "page size exceeds max limit of 1000"],
    ["queryRecords", { page: { offset: -1 } }, "page.offset: expected an integer from 0 to 49,000, got -1"],
    ["queryRecords", { page: { offset: 49_001 } }, "page offset must not exceed 49000"],
    ["queryRecords", { columns: "name" }, 'columns: expected an array, got "name"'],
    ["queryRecords", { columns: [5] }, "columns[0]: expected a string or an object, got 5"],

    ["aggregateRecords", { aggs: 5 }, "aggs: expected an object, got 5"],
    ["summarizeRecords", { page: { size: 1001 } }, "page.size: expected an integer from 1 to 1,000, got 1001"],
    ["summarizeRecords", { page: 5 }, "page: expected an object, got 5"],
    ["summarizeRecords", { columns: "product" }, 'columns: expected an array, got "product"'],
    ["summarizeRecords", { columns: [5] }, "columns[0]: expected a string, got 5"],
    ["summarizeRecords", { summaries: [] }, "summaries: expected an object, got an array of 0 elements"],

    ["runTransaction", { operations: {} }, "operations: expected an array, got an object with no members"],
    ["runTransaction", { operations: many(1001, { get: { table: "t", id: "a" } }) }, "expected at most 1,000 elements, got 1,001"],
    ["runTransaction", operation(null), "operations[1]: expected an object"],
    ["runTransaction", operation({}), 'exactly one of "insert", "update", "delete" or "get", got none'],
    ["runTransaction", operation({ remove: { table: "t" } }), "operations[1].remove: is not known here; expected"],
    ["runTransaction", operation({ get: {}, delete: {} }), 'exactly one of "insert", "update", "delete" or "get", got "get" and "delete"'],
    ["runTransaction", operation({ get: 5 }), "operations[1].get: expected an object, got 5"],
    ["runTransaction", operation({ get: { id: "a" } }), "operations[1].get.table: is required"],
    ["runTransaction", operation({ delete: { table: "t" } }), "operations[1].delete.id: is required"],
    ["runTransaction", operation({ delete: { table: "t", id: 5 } }), "operations[1].delete.id: expected a string that is not empty, got 5"],
    [
      "runTransaction",
      operation({ delete: { table: "t", id: "a", failIfMissing: "yes" } }),
      'operations[1].delete.failIfMissing: expected a boolean, got "yes"',
    ],
    [
      "runTransaction",
      operation({ delete: { table: "t", id: "a", force: true } }),
      'operations[1].delete.force: is not known here; expected "table", "id", "failIfMissing" or "columns"',
    ],
    ["runTransaction", operation({ insert: { table: "t", record: [] } }), "operations[1].insert.record: expected an object"],
    [
      "runTransaction",
      operation({ update: { table: "t", id: "a", fields: {}, ifVersion: -1 } }),
      "operations[1].update.ifVersion: expected an integer from 0 to 2,147,483,647, got -1",
    ],
    [
      "runTransaction",
      operation({ insert: { table: "t", record: {}, ifVersion: 2 ** 31 } }),
      "operations[1].insert.ifVersion: expected an integer from 0 to 2,147,483,647, got 2147483648",
    ],

    ["searchTable", { query: 5 }, "query: expected a string, got 5"],
    ["searchTable", { query: "x", fuzziness: 3 }, "fuzziness: expected an integer from 0 to 2, got 3"],
    ["searchTable", { query: "x", prefix: "word" }, 'prefix: expected "phrase" or "disabled", got "word"'],
    ["searchTable", { query: "x", language: "klingon" }, 'language: expected "arabic", '],
    ["searchTable", { query: "x", page: { size: 201 } }, "page.size: expected an integer from 0 to 200, got 201"],
    ["searchTable", { query: "x", page: { offset: 801 } }, "page.offset: expected an integer from 0 to 800, got 801"],
    ["searchTable", { query: "x", highlight: { enabled: "yes" } }, 'highlight.enabled: expected a boolean, got "yes"'],
    ["searchTable", { query: "x", target: "title" }, 'target: expected an array, got "title"'],
    ["searchTable", { query: "x", boosters: {} }, "boosters: expected an array, got an object with no members"],
    ["searchTable", { query: "x", boosters: many(33, {}) }, "boosters: expected at most 32 elements, got 33"],
    ["searchBranch", { query: "x", tables: "books" }, 'tables: expected an array, got "books"'],
    ["searchBranch", { query: "x", tables: [5] }, "tables[0]: expected"],
    ["searchBranch", { query: "x", tables: [{}] }, "tables[0]"],
    ["searchBranch", { query: "x", tables: many(1001, "books") }, "tables: expected at most 1,000 elements, got 1,001"],
  ])("%s refuses %j", (name, body, message) => {
    expect(() => check(name, body)).toThrow(expect.objectContaining({ code: "INVALID", message: expect.stringContaining(message) }));
  });

  test("columns of types that are not offered are refused with what to use instead, whatever members they have", () => {
    for (const column of [
      { name: "portrait", type: "file" },
      { name: "portrait", type: "file", file: { defaultPublicAccess: true } },
    ]) {
      expect(() => compileSchema(COLUMN)(column)).toThrow("File columns are not part of Lodestone. Keep files in an object store");
      expect(() => requireColumn("authors", column)).toThrow("File columns are not part of Lodestone.");
    }
    expect(() => compileSchema(COLUMN)({ name: "a", type: "string", size: 5 })).toThrow('size: is not known here; expected "name"');
  });

  test("null for an optional member means that it is absent", () => {
    for (const name of ["queryRecords", "aggregateRecords", "summarizeRecords", "searchTable"]) {
      const members = Object.keys(schemaOf(name).properties as object);
      const body = Object.fromEntries(members.map((member) => [member, null]));
      check(name, body);
      expect(body, name).toEqual({});
    }
  });
});
