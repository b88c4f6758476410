/** Names of PostgreSQL's own types, read once from each engine: versions differ. */
import type { Connection, Engine } from "../engine/engine.ts";

export interface CatalogNames {
  /** By oid. */
  readonly types: Map<number, string>;
}

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
  return { types: new Map(types.rows.map(({ oid, name }) => [oid, name])) };
}
