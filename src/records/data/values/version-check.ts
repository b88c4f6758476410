/** ifVersion: a write goes ahead only on the version that the client has seen. */
import { LodestoneError } from "../../../errors/lodestone-error.ts";
import { quoted } from "../../../errors/value-in-words.ts";
import { requireWholeNumber } from "../../../text/whole-number.ts";
import type { TableInfo } from "../../schema.ts";

const MAX_VERSION = 2 ** 31 - 1;

export function checkIfVersion(ifVersion: unknown, place = "ifVersion"): void {
  if (ifVersion !== undefined) requireWholeNumber(ifVersion, 0, MAX_VERSION, place);
}

/** @param version The record's current version; undefined when there is no record. */
export function versionConflict(table: TableInfo, id: string, ifVersion: number, version: number | undefined): LodestoneError {
  const state = version === undefined ? "does not exist" : `has version ${version}`;
  return new LodestoneError(
    "CONFLICT",
    `Record ${quoted(id)} of table ${quoted(table.name)} ${state}, but ifVersion is ${ifVersion}; read it again, then write again.`,
  );
}

export function recordNotFound(table: TableInfo, id: string): LodestoneError {
  return new LodestoneError("NOT_FOUND", `Table ${quoted(table.name)} has no record with the id ${quoted(id)}.`);
}
