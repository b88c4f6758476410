/**
 * How deep JSON may be nested in a json column, whoever writes it. So everything that is recursive can read,
 * answer and copy what is stored.
 */

/** Levels of objects and arrays. */
export const MAX_JSON_DEPTH = 128;

/** The condition in PostgreSQL, for a jsonb expression: true for null. The outermost is level 0. */
export const jsonDepthCondition = (expression: string): string =>
  `NOT pg_catalog.jsonb_path_exists(${expression}, 'strict $.**{${MAX_JSON_DEPTH}}.type() ? (@ == "array" || @ == "object")')`;
