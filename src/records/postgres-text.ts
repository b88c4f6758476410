/**
 * Values as PostgreSQL writes them as text, in answers, in dumps and in what psql's \copy makes; above all arrays, as
 * it writes and takes them: `{1,NULL,"a\"b",{…}}`, preceded by bounds
 * (`[0:1]=`) when they are not the usual ones (PostgreSQL documentation, "Array Input and Output Syntax").
 *
 * The package postgres-array is not used. It trusts its text, and here the text may come from users' files: with
 * `{"a}` version 3 never ends, and version 2 accepts `{a,,b}` and `{a},{b}`. It keeps the white space around
 * bare elements, which PostgreSQL drops, and it cannot pause within a long array.
 */

/** A text, or a part of one, as it is written between an item's quotes. */
export const escapedItem = (text: string): string => text.replace(/[\\"]/g, "\\$&");

export type ArrayItem<Item> = Item | null | ArrayItem<Item>[];

/** About this many characters are read in one go. */
const STEP_LENGTH = 1 << 14;
/** PostgreSQL's own limit. */
const MAX_DIMENSIONS = 6;
const BOUNDS = /^(?:\[[+-]?\d+:[+-]?\d+\])+=/;
/** What PostgreSQL takes for white space in an array. All else, such as a no-break space, is part of an element. */
const SPACES = " \t\n\r\v\f";
const ENDS_OF_BARE = '{},"';

/**
 * Pauses now and then, and yields the number of characters read since.
 *
 * @param toItem  makes an element from its text.
 * @returns undefined when the text is not an array.
 */
export function readArrayInSteps<Item>(
  text: string,
  toItem: (text: string) => Item,
): Generator<number, ArrayItem<Item>[] | undefined, undefined> {
  return new ArrayReader(text, toItem).lists();
}

/** The same in one go. */
export function readArray<Item>(text: string, toItem: (text: string) => Item): ArrayItem<Item>[] | undefined {
  const reading = readArrayInSteps(text, toItem);
  for (;;) {
    const { done, value } = reading.next();
    if (done === true) return value;
  }
}

class ArrayReader<Item> {
  readonly #text: string;
  readonly #toItem: (text: string) => Item;
  #at: number;
  #pausedAt: number;

  constructor(text: string, toItem: (text: string) => Item) {
    this.#text = text;
    this.#toItem = toItem;
    this.#at = BOUNDS.exec(text)?.[0].length ?? 0;
    this.#pausedAt = this.#at;
  }

  *lists(): Generator<number, ArrayItem<Item>[] | undefined, undefined> {
    const open: ArrayItem<Item>[][] = [];
    for (let before: "nothing" | "{" | "," | "item" = "nothing"; ; ) {
      yield* this.#pause();
      const list = open.at(-1);
      const character = this.#text[this.#at] ?? "";
      if (character === "{" && before !== "item" && open.length < MAX_DIMENSIONS) {
        const inner: ArrayItem<Item>[] = [];
        list?.push(inner);
        open.push(inner);
        this.#at++;
        before = "{";
      } else if (list === undefined) {
        return undefined;
      } else if (character !== "" && SPACES.includes(character)) {
        this.#at++;
      } else if (character === "}" && before !== ",") {
        this.#at++;
        open.pop();
        if (open.length === 0) return this.#at === this.#text.length ? list : undefined;
        before = "item";
      } else if (before === "item") {
        if (character !== ",") return undefined;
        this.#at++;
        before = ",";
      } else {
        const item = character === '"' ? yield* this.#quoted() : yield* this.#bare();
        if (item === undefined) return undefined;
        list.push(item.value);
        before = "item";
      }
    }
  }

  *#quoted() {
    this.#at++;
    const { unescaped, rest } = yield* this.#until('"');
    if (this.#text[this.#at++] !== '"') return undefined;
    return { value: this.#toItem(unescaped + rest) };
  }

  *#bare() {
    const { unescaped, rest } = yield* this.#until(ENDS_OF_BARE);
    let end = rest.length;
    while (end > 0 && SPACES.includes(rest[end - 1]!)) end--;
    const text = unescaped + rest.slice(0, end);
    if (text === "") return undefined;
    return { value: unescaped === "" && text.toUpperCase() === "NULL" ? null : this.#toItem(text) };
  }

  /** @returns the text up to one of the characters, or to the end: up to its last backslash, and what is behind. */
  *#until(ends: string): Generator<number, { unescaped: string; rest: string }, undefined> {
    const text = this.#text;
    let unescaped = "";
    let start = this.#at;
    for (;;) {
      yield* this.#pause();
      const stop = Math.min(this.#pausedAt + STEP_LENGTH, text.length);
      // Every character of long arrays passes here.
      let at = this.#at;
      while (at < stop && text[at] !== "\\" && !ends.includes(text[at]!)) at++;
      this.#at = at;
      if (at < stop && text[at] === "\\") {
        unescaped += text.slice(start, at) + (text[at + 1] ?? "");
        start = at + 2;
        this.#at = Math.min(start, text.length);
      } else if (at < stop || at === text.length) return { unescaped, rest: text.slice(start, at) };
    }
  }

  *#pause(): Generator<number, void, undefined> {
    if (this.#at - this.#pausedAt < STEP_LENGTH) return;
    yield this.#at - this.#pausedAt;
    this.#pausedAt = this.#at;
  }
}

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

const asText = (text: string): string => text;

/** The elements of an array of one dimension, if none of them is NULL; otherwise undefined. */
export function parseTextArray(text: string): string[] | undefined {
  const elements = readArray(text, asText);
  return elements?.every((element) => typeof element === "string") ? elements : undefined;
}

/** The same without the elements that are NULL: a list of texts has none. */
export function parseItems(text: string): string[] | undefined {
  const items = readArray(text, asText)?.filter((element) => element !== null);
  return items?.every((item) => typeof item === "string") ? items : undefined;
}
