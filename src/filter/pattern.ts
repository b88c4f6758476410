/**
 * `$pattern`: `*` is any text, `?` exactly one character (code point), `\` makes the next character literal.
 *
 * The matcher is greedy between stars and never goes back over one. That is right for globs: a match of the
 * text before a star is best taken as early as possible. It takes at most text × longest piece steps, never
 * exponentially many, and is an ordinary substring search where there is no `?`.
 */

import { checkText } from "./check-text.ts";
import { fault, type Place } from "./fault.ts";
import { MAX_PATTERN_LENGTH } from "./filter-limits.ts";
import { fold } from "./fold.ts";
import { ANY_CHARACTER, ANY_TEXT, type PatternPart } from "./tree.ts";

export function parsePattern(value: unknown, folded: boolean, place: Place): PatternPart[] {
  const pattern = checkText(value, place);
  if (pattern.length > MAX_PATTERN_LENGTH) {
    throw fault(place, `the pattern has ${pattern.length} characters; at most ${MAX_PATTERN_LENGTH} are allowed`);
  }
  const parts: PatternPart[] = [];
  let literal = "";
  const endLiteral = (): void => {
    if (literal !== "") parts.push(folded ? fold(literal) : literal);
    literal = "";
  };
  const characters = [...pattern];
  for (let i = 0; i < characters.length; i++) {
    const character = characters[i]!;
    if (character === "\\") {
      i++;
      if (i === characters.length) throw fault(place, "the pattern ends in a single backslash; write two for a literal backslash");
      literal += characters[i]!;
    } else if (character === "*") {
      endLiteral();
      if (parts.at(-1) !== ANY_TEXT) parts.push(ANY_TEXT);
    } else if (character === "?") {
      endLiteral();
      parts.push(ANY_CHARACTER);
    } else {
      literal += character;
    }
  }
  endLiteral();
  return parts;
}

/** The same as a LIKE pattern with `\` as escape. */
export function likePattern(parts: readonly PatternPart[]): string {
  let like = "";
  for (const part of parts) {
    if (part === ANY_TEXT) like += "%";
    else if (part === ANY_CHARACTER) like += "_";
    else like += part.replaceAll(/[\\%_]/g, "\\$&");
  }
  return like;
}

/** Pieces between the stars; the first is bound to the start and the last to the end of the text. */
export class PatternMatcher {
  readonly #pieces: readonly (readonly PatternPart[])[];

  constructor(parts: readonly PatternPart[]) {
    const pieces: PatternPart[][] = [[]];
    for (const part of parts) {
      if (part === ANY_TEXT) pieces.push([]);
      else pieces.at(-1)!.push(part);
    }
    this.#pieces = pieces;
  }

  matches(text: string): boolean {
    const pieces = this.#pieces;
    let position = matchAt(pieces[0]!, text, 0);
    if (pieces.length === 1) return position === text.length;
    if (position === -1) return false;
    for (let i = 1; i + 1 < pieces.length; i++) {
      position = find(pieces[i]!, text, position);
      if (position === -1) return false;
    }
    const last = pieces.at(-1)!;
    const start = startOfEnd(last, text);
    return start >= position && matchAt(last, text, start) === text.length;
  }
}

/** Where the piece ends if it stands at `position`, else -1. */
function matchAt(piece: readonly PatternPart[], text: string, position: number): number {
  for (const part of piece) {
    if (typeof part === "string") {
      if (!text.startsWith(part, position)) return -1;
      position += part.length;
    } else {
      if (position >= text.length) return -1;
      position += characterLength(text, position);
    }
  }
  return position;
}

/**
 * Where the first occurrence at or after `from` ends, else -1. `from` is at a character's start, and so is
 * every place that is tried.
 */
function find(piece: readonly PatternPart[], text: string, from: number): number {
  const first = piece[0];
  if (first === undefined) return from;
  for (let position = from; position <= text.length; position += characterLength(text, position)) {
    if (typeof first === "string") {
      // Well-formed text: a literal is only found where a character starts.
      position = text.indexOf(first, position);
      if (position === -1) return -1;
    }
    const end = matchAt(piece, text, position);
    if (end !== -1) return end;
  }
  return -1;
}

/** Where the piece must start to end with the text; -1 when the text is too short. */
function startOfEnd(piece: readonly PatternPart[], text: string): number {
  let position = text.length;
  for (let i = piece.length - 1; i >= 0; i--) {
    const part = piece[i]!;
    if (typeof part === "string") position -= part.length;
    else position -= position >= 2 && isLowSurrogate(text, position - 1) ? 2 : 1;
    if (position < 0) return -1;
  }
  return position;
}

function characterLength(text: string, position: number): number {
  const unit = text.charCodeAt(position);
  return unit >= 0xd800 && unit <= 0xdbff ? 2 : 1;
}

function isLowSurrogate(text: string, position: number): boolean {
  const unit = text.charCodeAt(position);
  return unit >= 0xdc00 && unit <= 0xdfff;
}
