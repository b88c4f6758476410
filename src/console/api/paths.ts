/** Paths of the API. Names are encoded here and nowhere else. */
export interface Place {
  readonly database: string;
  readonly branch: string;
}

const encode = encodeURIComponent;

export const branchPath = ({ database, branch }: Place): string => `/db/${encode(database)}:${encode(branch)}`;

export const tablePath = (place: Place, table: string): string => `${branchPath(place)}/tables/${encode(table)}`;

export const recordPath = (place: Place, table: string, id: string): string => `${tablePath(place, table)}/data/${encode(id)}`;
