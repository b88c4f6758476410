/** The most elements that a vector may have, in an index or in a column of a table. */
export const MAX_DIMENSION = 10_000;
