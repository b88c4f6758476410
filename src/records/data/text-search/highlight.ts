/** Where in a text its words were found: the text, or parts of a long one, with `<em>` around them. */
import type { Slices } from "../../../threads/event-loop.ts";
import { type TermMatcher, type Word, wordsIn } from "./words.ts";

const WHOLE_LENGTH = 200;
const AROUND_LENGTH = 70;
const MAX_FRAGMENTS = 3;

/** Empty when nothing of it matches. A long text is read no further than its last fragment. */
export async function highlight(text: string, matcher: TermMatcher, encodeHtml: boolean, slices: Slices): Promise<string[]> {
  const encode = encodeHtml ? encodeEntities : (part: string): string => part;
  const isWhole = text.length <= WHOLE_LENGTH;
  const fragments: string[] = [];
  let open: { readonly end: number; text: string; at: number } | undefined;
  const close = (): void => {
    if (open !== undefined) fragments.push(open.text + encode(text.slice(open.at, open.end)));
    open = undefined;
  };
  const mark = (word: Word): void => {
    if (open !== undefined && word.end > open.end) close();
    if (fragments.length === MAX_FRAGMENTS) return;
    open ??= {
      end: isWhole ? text.length : wordBoundary(text, word.end + AROUND_LENGTH),
      text: "",
      at: isWhole ? 0 : wordBoundary(text, word.start - AROUND_LENGTH),
    };
    open.text += `${encode(text.slice(open.at, word.start))}<em>${encode(text.slice(word.start, word.end))}</em>`;
    open.at = word.end;
  };
  for (const word of wordsIn(text)) {
    const isFound = matcher.match(word).length > 0;
    if (slices.spend(matcher.lastCost)) await slices.rest();
    if (isFound) mark(word);
    if (fragments.length === MAX_FRAGMENTS) return fragments;
  }
  close();
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
