/**
 * The form of libpg-query's parse trees: nodes are wrapped as {Type: {...}}, lists are arrays, and a location
 * is a byte offset into the statement.
 */

export type Tree = { readonly [field: string]: unknown };

/** A statement that is not allowed, or whose meaning cannot be known. */
export class Refusal extends Error {
  /** Byte offset of the fault; -1 if it has no place. */
  readonly location: number;
  constructor(message: string, location = -1) {
    super(message);
    this.location = location;
  }
}

export function unwrap(wrapped: unknown): [string, Tree] {
  const entries = Object.entries(wrapped as Tree);
  if (entries.length !== 1) throw new Refusal("the statement has a form that is not known");
  return [entries[0]![0], entries[0]![1] as Tree];
}

/** The strings of a list of String nodes; other nodes (A_Star, A_Indices) are left out. */
export function strings(list: unknown): string[] {
  return ((list ?? []) as unknown[]).flatMap((element) => {
    const [type, tree] = unwrap(element);
    return type === "String" ? [String(tree.sval ?? "")] : [];
  });
}

export function locationOf(tree: unknown): number {
  const location = (tree as { location?: unknown } | null | undefined)?.location;
  return typeof location === "number" ? location : -1;
}
