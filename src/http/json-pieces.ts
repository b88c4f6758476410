/** A value as JSON text, piece by piece, so that an answer is never held as one text: the pieces together are what JSON.stringify gives. */

/** Weight, in characters about, up to which a value is written in one go. */
const PIECE_WEIGHT = 32 * 1024;
/** What a number, a literal or brackets weigh. */
const VALUE_WEIGHT = 8;

/** Whether the value weighs more than `limit` characters of JSON, about. Looks at no more of it than that. */
export function isHeavierThan(value: unknown, limit: number): boolean {
  return weigh(value, limit) > limit;
}

/** @param value  of plain objects, lists, texts, finite numbers, booleans, null; members that are undefined are left out. */
export function* jsonPieces(value: unknown): Generator<string, void, undefined> {
  let text = "";
  for (const part of parts(value)) {
    text += part;
    if (text.length < PIECE_WEIGHT) continue;
    yield text;
    text = "";
  }
  if (text !== "") yield text;
}

function* parts(value: unknown): Generator<string, void, undefined> {
  if (typeof value !== "object" || value === null || !isHeavierThan(value, PIECE_WEIGHT)) {
    yield JSON.stringify(value);
  } else if (Array.isArray(value)) {
    let before = "[";
    for (const element of value) {
      yield before;
      yield* parts(element ?? null);
      before = ",";
    }
    yield before === "[" ? "[]" : "]";
  } else {
    let before = "{";
    for (const key of Object.keys(value)) {
      const member = (value as Record<string, unknown>)[key];
      if (member === undefined) continue;
      yield `${before}${JSON.stringify(key)}:`;
      yield* parts(member);
      before = ",";
    }
    yield before === "{" ? "{}" : "}";
  }
}

function weigh(value: unknown, limit: number): number {
  if (typeof value === "string") return value.length + 2;
  if (typeof value !== "object" || value === null) return VALUE_WEIGHT;
  let weight = VALUE_WEIGHT;
  if (Array.isArray(value)) {
    for (const element of value) {
      weight += weigh(element, limit - weight);
      if (weight > limit) break;
    }
    return weight;
  }
  for (const key in value) {
    weight += key.length + 4 + weigh((value as Record<string, unknown>)[key], limit - weight);
    if (weight > limit) break;
  }
  return weight;
}
