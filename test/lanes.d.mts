export const LANES: number;
export function joinLanes(lanes: Iterable<number>): number;
