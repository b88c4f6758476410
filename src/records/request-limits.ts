/**
 * Limits of requests that several places enforce: the code that reads requests, the schemas of the HTTP API, and
 * the console and the commands, which send as much at a time as is allowed. Other limits are next to what they
 * limit.
 */

/** Operations of one transaction. */
export const MAX_OPERATIONS = 1_000;

/** Records of one page. */
export const MAX_PAGE_SIZE = 1_000;

/** Records before a page, or before those that link back. Skipping costs as much as reading; cursors work at any depth. */
export const MAX_PAGE_OFFSET = 49_000;

/** Records of one bulk insert. */
export const MAX_BULK = 1_000;

/** Names that one request selects. */
export const MAX_SELECTED = 1_000;

export const DEFAULT_PAGE_SIZE = 20;
