/** Names of PostgreSQL's own types and functions, read once from each engine: versions differ. */
import type { Connection, Engine } from "../engine/engine.ts";
import { ALLOWED_FUNCTIONS, ALLOWED_TYPES } from "./allowed-names.ts";

export interface CatalogNames {
  /** By oid. */
  readonly types: Map<number, string>;
  /** What `x.f` must not name: see REFUSED_AFTER_A_DOT. */
  readonly refusedAfterADot: ReadonlySet<string>;
}

/**
 * Where x has no column f, PostgreSQL takes `x.f` and `(x).f` for the call f(x), or for a cast of x to a type f. Which it is depends on
 * the relations in scope and their columns; but it can be nothing that does not have the name f. So these names are refused there,
 * column or not, and no other need be told from a column:
 *
 * - functions with arguments that are not in $1, unless they are immutable and their first argument's type is harmless. An immutable
 *   function reads no table, file, setting or clock. (Nobody can call one that takes an argument of type internal.)
 * - types that are neither in $2 nor harmless. A type is harmless when its input is immutable: regclass, whose input looks names up
 *   in the catalog, is not. A list is as harmless as its elements.
 *
 * Functions and types are looked up in pg_catalog and in the branch's schema, where nobody but the service makes any.
 */
const REFUSED_AFTER_A_DOT = `
SELECT name FROM (WITH types AS (
  SELECT t.oid, t.typname, element.typname = ANY($2) OR input.provolatile = 'i' AS is_harmless
    FROM pg_catalog.pg_type t
    JOIN pg_catalog.pg_type element ON element.oid = CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN t.typelem ELSE t.oid END
    JOIN pg_catalog.pg_proc input ON input.oid = element.typinput
   WHERE t.typnamespace = 'pg_catalog'::regnamespace)
SELECT p.proname AS name FROM pg_catalog.pg_proc p JOIN types ON types.oid = p.proargtypes[0]
 WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.proname <> ALL($1)
   AND NOT (p.provolatile = 'i' AND types.is_harmless) AND 'internal'::regtype <> ALL(p.proargtypes)
UNION
SELECT typname FROM types JOIN pg_catalog.pg_type USING (oid, typname) WHERE NOT is_harmless AND typtype <> 'p') AS refused`;
/** Harmless, though it depends on a setting, and a likely name of a column. */
const HARMLESS = ["xml"];

const known = new WeakMap<Engine, Promise<CatalogNames>>();

export function catalogNames(engine: Engine): Promise<CatalogNames> {
  const { shared } = engine;
  let names = known.get(shared);
  if (names === undefined) {
    names = read(shared);
    known.set(shared, names);
    names.catch(() => known.delete(shared)); // asked again by the next statement
  }
  return names;
}

/** Looks up the types not known yet: row types of tables come and go. */
export async function typeNames(connection: Connection, names: CatalogNames, oids: readonly number[]): Promise<string[]> {
  const missing = oids.filter((oid) => !names.types.has(oid));
  if (missing.length > 0) {
    const { rows } = await connection.query<{ oid: number; name: string }>(
      "SELECT oid, typname AS name FROM pg_catalog.pg_type WHERE oid = ANY($1::oid[])",
      [missing],
    );
    for (const { oid, name } of rows) names.types.set(oid, name);
  }
  return oids.map((oid) => names.types.get(oid) ?? "unknown");
}

async function read(engine: Engine): Promise<CatalogNames> {
  const types = await engine.query<{ oid: number; name: string }>(
    "SELECT oid, typname AS name FROM pg_catalog.pg_type WHERE typnamespace = 'pg_catalog'::regnamespace",
  );
  const refused = await engine.query<{ name: string }>(REFUSED_AFTER_A_DOT, [
    [...ALLOWED_FUNCTIONS, ...ALLOWED_TYPES, ...HARMLESS],
    [...ALLOWED_TYPES, ...HARMLESS],
  ]);
  return {
    types: new Map(types.rows.map(({ oid, name }) => [oid, name])),
    refusedAfterADot: new Set(refused.rows.map(({ name }) => name)),
  };
}
