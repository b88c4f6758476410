/**
 * Schema changes as data: the operations of `schema/apply`, of `schema/compare` and of the history of a branch.
 * Each is an object with one key. Only the form of incoming operations is checked here; the schema editor
 * checks whether they fit the branch.
 */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { inWords } from "../../../errors/value-in-words.ts";
import { isObject } from "../../../text/json-object.ts";
import { requireColumnName, requireTableName } from "../../identifiers.ts";
import type { SchemaOperation } from "../../schema.ts";
import { requireColumn } from "../column-types.ts";

/** More than any schema needs at once; each is several statements in one transaction. */
const MAX_SCHEMA_OPERATIONS = 10_000;

const KINDS = ["addTable", "removeTable", "renameTable", "addColumn", "removeColumn", "renameColumn"] as const;

/**
 * Checks a list as a client gives it. Members come out in a fixed order, so that equal operations have equal
 * text. `path` names the list in messages.
 */
export function requireOperations(given: unknown, path: string): SchemaOperation[] {
  if (!Array.isArray(given)) throw invalid(`${path} has to be a list of operations.`);
  if (given.length > MAX_SCHEMA_OPERATIONS) {
    throw invalid(`${path} has ${given.length} operations; at most ${MAX_SCHEMA_OPERATIONS} are possible at once.`);
  }
  return given.map((operation, i) => requireOperation(operation, `${path}[${i}]`));
}

function requireOperation(given: unknown, path: string): SchemaOperation {
  const keys = isObject(given) ? Object.keys(given) : [];
  const [kind] = keys;
  const known = KINDS.find((candidate) => candidate === kind);
  if (!isObject(given) || keys.length !== 1 || known === undefined) {
    throw invalid(`${path} has to be an object with one of ${KINDS.join(", ")}; got ${inWords(given)}.`);
  }
  const body = given[known];
  if (!isObject(body)) throw invalid(`${path}.${known} has to be an object.`);
  const table = (): string => {
    requireTableName(body.table);
    return body.table;
  };
  switch (known) {
    case "addTable":
      return { addTable: { table: table() } };
    case "removeTable":
      return { removeTable: { table: table() } };
    case "renameTable": {
      const { oldName, newName } = body;
      requireTableName(oldName);
      requireTableName(newName);
      return { renameTable: { oldName, newName } };
    }
    case "addColumn":
      return { addColumn: { table: table(), column: requireColumn(table(), body.column) } };
    case "removeColumn": {
      const { column } = body;
      requireColumnName(table(), column);
      return { removeColumn: { table: table(), column } };
    }
    case "renameColumn": {
      const { oldName, newName } = body;
      requireColumnName(table(), oldName);
      requireColumnName(table(), newName);
      return { renameColumn: { table: table(), oldName, newName } };
    }
  }
}

const invalid = (message: string): LodestoneError => new LodestoneError("INVALID", message);
