/**
 * An answer as a text that fits into a model's context. Vectors are left out, since a model cannot read them. Long texts and
 * lists are cut, and last the records that are too many. The text says what is missing, and how to ask for it.
 */
import { ExactJson } from "../records/exact-json.ts";

/** Of one answer, what it says about cuts included: about 7,000 tokens. */
export const MAX_ANSWER_CHARACTERS = 20_000;

/** Kept for what is said about cuts. */
const NOTE_CHARACTERS = 600;
/** A longer list of numbers counts as a vector. */
const LONGEST_NUMBERS = 16;
const MAX_DEPTH = 20;

interface Level {
  /** Characters of one text. */
  readonly text: number;
  /** Elements of a list, and members of an object, that are not the answer's own. */
  readonly elements: number;
}

/** Each is tried in its turn, until the answer fits. */
const LEVELS: readonly Level[] = [
  { text: 10_000, elements: 1_000 },
  { text: 1_000, elements: 100 },
  { text: 200, elements: 30 },
];

/** @param answer  of plain objects, lists, texts, numbers, booleans, null and ExactJson. Cost: no more than some of what is shown. */
export function answerText(answer: unknown): string {
  const room = MAX_ANSWER_CHARACTERS - NOTE_CHARACTERS;
  for (const level of LEVELS) {
    const shortening = new Shortening(level, room);
    const short = shortening.shorten(answer, 0);
    if (shortening.isFull) continue;
    const text = JSON.stringify(short);
    if (text.length <= room) return [text, ...shortening.notes].join("\n");
  }
  return firstOf(answer as Readonly<Record<string, unknown>>, room);
}

/** As many elements of the answer's list as fit, or the beginning of an answer that has no list. */
function firstOf(answer: Readonly<Record<string, unknown>>, room: number): string {
  const level = LEVELS.at(-1) as Level;
  const [name, list] = Object.entries(answer).find((member): member is [string, unknown[]] => Array.isArray(member[1])) ?? ["", []];
  // The cursor leads behind the records that are left out.
  const { [name]: _list, meta: _cursor, ...rest } = answer;
  const shortening = new Shortening(level, room);
  const others = shortening.shorten(rest, 0);
  const shown: unknown[] = [];
  let length = JSON.stringify({ ...(others as object), [name]: [] }).length;
  for (const element of list) {
    const short = shortening.shorten(element, 1);
    length += JSON.stringify(short).length + 1;
    if (shortening.isFull || length > room) break;
    shown.push(short);
  }
  if (shown.length === 0) {
    const text = JSON.stringify(new Shortening(level, room).shorten(answer, 0)).slice(0, room).toWellFormed();
    return [`${text}…`, "This is only the beginning of the answer: ask for fewer columns.", ...shortening.notes].join("\n");
  }
  const note =
    `Only the first ${shown.length} of ${list.length} ${name} fit here. For the others ask for fewer columns, a narrower filter, ` +
    "or a smaller size and then an offset.";
  return [JSON.stringify({ ...(others as object), [name]: shown }), note, ...shortening.notes].join("\n");
}

/** A copy of a value with less in it. Ends early, and is full, when even that is more than there is room for. */
class Shortening {
  readonly #level: Level;
  #room: number;
  #hasVectors = false;
  #hasParts = false;

  constructor(level: Level, room: number) {
    this.#level = level;
    this.#room = room;
  }

  get isFull(): boolean {
    return this.#room < 0;
  }

  /** What the reader should know of what is missing. */
  get notes(): string[] {
    const notes = this.#hasVectors ? ["Vectors are left out."] : [];
    if (this.#hasParts) {
      notes.push(
        'Long values are cut at "…": get_record with one of its columns shows more of it, and run_sql with substring("column", from, count) any part.',
      );
    }
    return notes;
  }

  /** @param depth  0 for the answer itself. */
  shorten(value: unknown, depth: number): unknown {
    if (value instanceof ExactJson) return this.#text(value.text);
    if (typeof value === "string") return this.#text(value);
    this.#room -= 4;
    if (typeof value !== "object" || value === null || this.isFull) return value;
    if (depth > MAX_DEPTH) return this.#cut("…");
    if (!Array.isArray(value)) return this.#members(value, depth);
    if (isVector(value)) {
      this.#hasVectors = true;
      return `(${value.length} numbers)`;
    }
    const shown: unknown[] = [];
    for (const element of value) {
      if (this.isFull) break;
      if (shown.length === this.#most(depth)) {
        shown.push(this.#cut(`… (${value.length} elements)`));
        break;
      }
      shown.push(this.shorten(element, depth + 1));
    }
    return shown;
  }

  #members(object: object, depth: number): Record<string, unknown> {
    const shown: [string, unknown][] = [];
    for (const [name, member] of Object.entries(object)) {
      if (this.isFull) break;
      if (member === undefined) continue;
      if (shown.length === this.#most(depth)) {
        shown.push(["…", this.#cut("(more)")]);
        break;
      }
      this.#room -= name.length;
      shown.push([name, this.shorten(member, depth + 1)]);
    }
    return Object.fromEntries(shown);
  }

  #text(text: string): string {
    const most = this.#level.text;
    this.#room -= Math.min(text.length, most);
    return text.length <= most ? text : this.#cut(`${text.slice(0, most).toWellFormed()}… (${text.length} characters)`);
  }

  #cut(what: string): string {
    this.#hasParts = true;
    return what;
  }

  /** The answer itself and its list are as long as they are. */
  #most(depth: number): number {
    return depth < 2 ? Number.POSITIVE_INFINITY : this.#level.elements;
  }
}

function isVector(list: readonly unknown[]): boolean {
  return list.length > LONGEST_NUMBERS && list.every((element) => typeof element === "number");
}
