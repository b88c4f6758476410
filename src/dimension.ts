/** The most elements that a vector may have, in an index or in a column of a table. */
export const MAX_DIMENSION = 10_000;

/** The fewest elements of a vector column. (An index takes vectors of one.) */
export const MIN_COLUMN_DIMENSION = 2;
