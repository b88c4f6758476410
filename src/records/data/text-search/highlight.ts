/** Where in a text its words were found: the text, or parts of a long one, with `<em>` around them. */
import { matchQuality, type Term, wordsOf } from "./words.ts";

const WHOLE_LENGTH = 200;
const AROUND_LENGTH = 70;
const MAX_FRAGMENTS = 3;

/** Empty when nothing of it matches. */
export function highlight(text: string, terms: readonly Term[], encodeHtml: boolean): string[] {
  const found = wordsOf(text).filter((word) => terms.some((term) => matchQuality(term, word.plain) > 0));
  if (found.length === 0) return [];
  const encode = encodeHtml ? encodeEntities : (part: string): string => part;
  const fragments: string[] = [];
  let i = 0;
  while (i < found.length && fragments.length < MAX_FRAGMENTS) {
    const isWhole = text.length <= WHOLE_LENGTH;
    const start = isWhole ? 0 : wordBoundary(text, found[i]!.start - AROUND_LENGTH);
    const end = isWhole ? text.length : wordBoundary(text, found[i]!.end + AROUND_LENGTH);
    let fragment = "";
    let at = start;
    for (; i < found.length && found[i]!.end <= end; i++) {
      const word = found[i]!;
      fragment += `${encode(text.slice(at, word.start))}<em>${encode(text.slice(word.start, word.end))}</em>`;
      at = word.end;
    }
    fragments.push(fragment + encode(text.slice(at, end)));
  }
  return fragments;
}

/** The next white space on, so that no word and no surrogate pair is cut. */
function wordBoundary(text: string, position: number): number {
  if (position <= 0) return 0;
  const space = text.slice(position).search(/\s/);
  return space === -1 ? text.length : position + space;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function encodeEntities(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
