/**
 * Values as PostgreSQL writes them as text, in dumps and in what psql's \copy makes (PostgreSQL documentation,
 * "Array Input and Output Syntax").
 */

/**
 * `2020-01-02 03:04:05.678+00`, timestamptz under ISO DateStyle, as RFC 3339. A timestamp without a zone is in
 * UTC, and a date is its midnight there. undefined for everything else.
 */
export function toRfc3339(text: string): string | undefined {
  const match = /^(\d{4}-\d\d-\d\d)(?: (\d\d:\d\d:\d\d(?:\.\d+)?)(?:([+-]\d\d)(?::(\d\d))?)?)?$/.exec(text);
  if (match === null) return undefined;
  const [, date, time = "00:00:00", hours, minutes = "00"] = match;
  return `${date}T${time}${hours === undefined ? "Z" : `${hours}:${minutes}`}`;
}

/** An element in quotes, with backslashes before what is meant literally; or bare; then a comma or the end. */
const ELEMENT = /\s*(?:"((?:[^"\\]|\\.)*)"|((?:[^"\\{},\s]|\\.)(?:[^"\\{},]|\\.)*))\s*(,|$)/gsy;

/**
 * An array of one dimension: `{a,"b, c","d \"e\"",NULL}`. undefined when the text is not one.
 *
 * The package postgres-array is not used because it trusts its text, and here the text is users' files. With
 * `{"a}` version 3 never ends, and version 2 accepts `{a,,b}` and `{a},{b}`. It also keeps the white space
 * around bare elements, which PostgreSQL drops.
 */
export function parseArray(text: string): (string | null)[] | undefined {
  if (!text.startsWith("{") || !text.endsWith("}")) return undefined;
  const inner = text.slice(1, -1);
  if (inner.trim() === "") return [];
  const elements: (string | null)[] = [];
  const element = new RegExp(ELEMENT);
  for (;;) {
    const match = element.exec(inner);
    if (match === null) return undefined;
    const [, quoted, bare = "", separator] = match;
    if (quoted !== undefined) elements.push(quoted.replace(/\\(.)/gs, "$1"));
    else elements.push(bare.toUpperCase() === "NULL" ? null : bare.trimEnd().replace(/\\(.)/gs, "$1"));
    if (separator === "") return elements;
  }
}

/** The elements, if none of them is NULL. */
export function parseTextArray(text: string): string[] | undefined {
  const elements = parseArray(text);
  return elements?.some((element) => element === null) ? undefined : (elements as string[] | undefined);
}

/** The elements without NULLs: a list of texts has none. */
export function parseItems(text: string): string[] | undefined {
  return parseArray(text)?.filter((element) => element !== null);
}
