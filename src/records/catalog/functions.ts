/** Functions of the schema `lodestone`. They hold no state: each start replaces them unless they are as it would make them. */
import { createHash } from "node:crypto";
import { foldFunctionSql } from "../../filter/fold.ts";
import type { Connection } from "../engine/engine.ts";

/**
 * Five bits at a time choose one of the alphabet's 32 characters. newRecordId in data/values/record-metadata.ts does
 * the same in JavaScript.
 */
const characters = (bits: string): string =>
  [45, 40, 35, 30, 25, 20, 15, 10, 5, 0]
    .map((shift) => `substr('0123456789abcdefghijklmnopqrstuv', ((${bits} >> ${shift}) & 31)::int4 + 1, 1)`)
    .join(" || ");

/**
 * 48 bits of milliseconds, then 52 bits of a random UUID (its last 13 hexadecimal digits but the first few are
 * random).
 */
const RECORD_ID = `CREATE OR REPLACE FUNCTION lodestone.record_id() RETURNS text LANGUAGE sql VOLATILE PARALLEL SAFE
  SET search_path = pg_catalog, pg_temp AS $body$
  SELECT 'rec_' || ${characters("((ms << 2) | (random >> 50))")} || ${characters("random")}
  FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS ms,
    ('x' || substr(replace(gen_random_uuid()::text, '-', ''), 20, 13))::bit(52)::int8 AS random) AS bits
$body$`;

/** SQLSTATE of lodestone.bounded_answer. */
export const ANSWER_TOO_LARGE = "LS413";

/** BEFORE UPDATE FOR EACH ROW: SQL and the API agree on versions, whoever writes. */
const TOUCH_RECORD = `CREATE OR REPLACE FUNCTION lodestone.touch_record() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  IF NEW."id" IS DISTINCT FROM OLD."id" THEN
    RAISE EXCEPTION 'the id of a record cannot change' USING ERRCODE = 'integrity_constraint_violation', TABLE = TG_TABLE_NAME, COLUMN = 'id';
  END IF;
  NEW."xata.version" := OLD."xata.version" OPERATOR(pg_catalog.+) 1;
  NEW."xata.createdAt" := OLD."xata.createdAt";
  NEW."xata.updatedAt" := pg_catalog.now();
  RETURN NEW;
END $body$`;

/** The answer of a statement that commits by itself: no larger than this, or nothing is done. */
const BOUNDED_ANSWER = `CREATE OR REPLACE FUNCTION lodestone.bounded_answer(answer text, most int4) RETURNS text LANGUAGE plpgsql STABLE STRICT AS $body$
BEGIN
  IF pg_catalog.octet_length(answer) OPERATOR(pg_catalog.>) most THEN
    RAISE EXCEPTION 'the answer is larger than what is committed with it' USING ERRCODE = '${ANSWER_TOO_LARGE}';
  END IF;
  RETURN answer;
END $body$`;

const FUNCTIONS: readonly string[] = [RECORD_ID, TOUCH_RECORD, BOUNDED_ANSWER, foldFunctionSql()];

/**
 * A comment on a table says what the functions were made with, and what they were then. A release that does not know
 * the comment, older or newer, replaces the functions and leaves it; then they are no longer what it says.
 */
export async function installFunctions(connection: Connection): Promise<void> {
  const statements = [...FUNCTIONS, ...connection.vectors.functions];
  const names = statements.map((statement) => /FUNCTION lodestone\.(\w+)/.exec(statement)![1]);
  const made = createHash("sha256").update(statements.join("\n")).digest("hex");
  const comment = `'functions ${made} ' || md5(string_agg(proc::text, ' ' ORDER BY oid))`;
  const look = `SELECT ${comment} AS comment, obj_description('lodestone.format'::regclass, 'pg_class') AS found
    FROM pg_catalog.pg_proc AS proc WHERE pronamespace = 'lodestone'::regnamespace AND proname = ANY ('{${names.join()}}')`;
  const [before] = (await connection.query<{ comment: string | null; found: string | null }>(look)).rows;
  if (before!.comment !== null && before!.comment === before!.found) return;
  for (const statement of statements) await connection.query(statement);
  const [after] = (await connection.query<{ comment: string }>(look)).rows;
  await connection.query(`COMMENT ON TABLE lodestone.format IS '${after!.comment}'`);
}
