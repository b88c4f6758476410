/** Marks the words of a query in a text. */
import { isHighSurrogate } from "../text/surrogates.ts";
import type { Slices } from "../threads/event-loop.ts";
import type { TermMatcher } from "./terms.ts";
import { type Word, wordsIn } from "./words.ts";

const WHOLE_LENGTH = 200;
const AROUND_LENGTH = 70;
const MAX_FRAGMENTS = 3;
const OPEN = "<em>";
const CLOSE = "</em>";

/** Where in a text its words were found: the text, or parts of a long one, with `<em>` around them. Empty when nothing of it matches. A long text is read no further than its last fragment. */
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
    // Bigrams overlap: what is marked already is not marked again.
    if (open !== undefined && word.start < open.at) {
      if (word.end > open.at) {
        open.text = `${open.text.slice(0, -CLOSE.length)}${encode(text.slice(open.at, word.end))}${CLOSE}`;
        open.at = word.end;
      }
      return;
    }
    if (open !== undefined && word.end > open.end) close();
    if (fragments.length === MAX_FRAGMENTS) return;
    open ??= {
      end: isWhole ? text.length : wordBoundary(text, word.end + AROUND_LENGTH),
      text: "",
      at: isWhole ? 0 : wordBoundary(text, word.start - AROUND_LENGTH),
    };
    open.text += `${encode(text.slice(open.at, word.start))}${OPEN}${encode(text.slice(word.start, word.end))}${CLOSE}`;
    open.at = word.end;
  };
  for (const word of wordsIn(text)) {
    const isFound = matcher.matches(word);
    if (slices.spend(matcher.lastCost)) await slices.rest();
    if (isFound) mark(word);
    if (fragments.length === MAX_FRAGMENTS) return fragments;
  }
  close();
  return fragments;
}

/** The next white space, so that no word is cut; where there is none nearby, the next character. */
function wordBoundary(text: string, position: number): number {
  if (position <= 0) return 0;
  const space = text.slice(position, position + AROUND_LENGTH).search(/\s/);
  if (space !== -1) return position + space;
  if (position + AROUND_LENGTH >= text.length) return text.length;
  return isHighSurrogate(text.charCodeAt(position - 1)) ? position + 1 : position;
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

function encodeEntities(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character]!);
}
