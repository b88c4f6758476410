/** ifVersion: a write goes ahead only on the version that the client has seen. */
import { LodestoneError } from "../../../errors.ts";
import { inWords, quoted } from "../../../value-in-words.ts";
import type { TableInfo } from "../../schema.ts";

const MAX_VERSION = 2 ** 31 - 1;

export function checkIfVersion(ifVersion: unknown, place = "ifVersion"): void {
  if (ifVersion === undefined) return;
  if (typeof ifVersion === "number" && Number.isInteger(ifVersion) && ifVersion >= 0 && ifVersion <= MAX_VERSION) return;
  throw new LodestoneError("INVALID", `${place} is ${inWords(ifVersion)}; expected a whole number from 0 to ${MAX_VERSION}.`);
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
