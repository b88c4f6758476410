/** Limits of a filter. Each is checked while parsing, before anything is compiled, and the message names it. */

/** Nesting of objects and lists. */
export const MAX_FILTER_DEPTH = 32;
/** Conditions and operators in one filter. */
export const MAX_FILTER_CONDITIONS = 2_000;
/** Values in all lists of one filter together. */
export const MAX_FILTER_VALUES = 20_000;
/** UTF-16 code units of one text operand. */
export const MAX_FILTER_TEXT_LENGTH = 100_000;
/** UTF-16 code units of a `$pattern`. */
export const MAX_PATTERN_LENGTH = 1_000;
/** Links followed by one path, in filters and wherever else a request names a column. */
export const MAX_LINKS = 8;
/** Steps of such a path into json. */
export const MAX_JSON_STEPS = 32;
/** Of a JSON object or list that a json column is compared with. */
export const MAX_JSON_DOCUMENT_DEPTH = 100;
