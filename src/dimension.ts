/** Elements of a vector at most, in an index as in a column of a table. */
export const MAX_DIMENSION = 10_000;
