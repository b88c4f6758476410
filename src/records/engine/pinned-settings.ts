/**
 * Settings that a statement may change and that must be restored for the next one. The first wall of SQL
 * reads statements as PostgreSQL reads them under these values. The others decide what is durable, what is
 * confined, and what a result looks like.
 */

/**
 * Under these values our reading of a statement, and of a result, is the same as PostgreSQL's. All but the
 * last four are PostgreSQL's defaults.
 */
export const PINNED_SETTINGS: readonly (readonly [name: string, value: string])[] = [
  ["client_encoding", "UTF8"],
  ["standard_conforming_strings", "on"],
  ["backslash_quote", "safe_encoding"],
  ["escape_string_warning", "on"],
  ["quote_all_identifiers", "off"],
  ["transform_null_equals", "off"],
  ["array_nulls", "on"],
  ["exit_on_error", "off"],
  ["bytea_output", "hex"],
  ["extra_float_digits", "1"],
  ["IntervalStyle", "postgres"],
  ["DateStyle", "ISO"],
  ["TimeZone", "UTC"],
];

const WATCHED = [
  ...PINNED_SETTINGS.map(([name]) => name),
  "role",
  "search_path",
  "statement_timeout",
  "lock_timeout",
  "idle_in_transaction_session_timeout",
  "transaction_timeout",
  "client_connection_check_interval",
  "default_transaction_isolation",
  "default_transaction_read_only",
  "row_security",
  "synchronous_commit",
  "work_mem",
  "lodestone.writer",
];

/**
 * Who the session is and how it is set, as one text. Unless it is equal before and after a user's statements,
 * the session is not used again.
 */
export const SESSION_STATE = `SELECT pg_catalog.concat_ws('|', current_user, session_user, pg_catalog.string_agg(coalesce(pg_catalog.current_setting(name, true), ''), '|')) AS state
  FROM pg_catalog.unnest('{${WATCHED.join(",")}}'::pg_catalog.text[]) AS name`;

/**
 * SQL for the timeline on which a primary writes (int4). It grows by one with every promotion. It is taken
 * from the name of the WAL file, which is right at once; pg_control_checkpoint() learns of a promotion only
 * at the next checkpoint.
 */
export const TIMELINE = `('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int4`;
