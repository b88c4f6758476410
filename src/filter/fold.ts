/**
 * Case folding for `$iContains` and `$iPattern`: one code point becomes one code point, by a map made once from
 * JavaScript's `toLowerCase`. The SQL function is generated from the same map, so both sides agree whatever
 * Unicode version or locale the database has.
 *
 * This is simple on purpose. The one character whose lower case has several code points (U+0130) stays as it
 * is. So lengths in code points never change, and `?` in a pattern matches the same characters with and without
 * folding.
 */

/** Code points that are looked at together. */
const BLOCK = 0x80;

let made: ReadonlyMap<string, string> | undefined;

/**
 * Upper-case code points beyond ASCII that have a lower case of one code point, in order. Made when first needed, which
 * takes milliseconds: most programs that import the library never do.
 */
function foldedCharacters(): ReadonlyMap<string, string> {
  made ??= makeMap();
  return made;
}

/**
 * The only characters whose lower case is not one code point (İ) or depends on their neighbours (Σ at the end
 * of a word).
 */
const SPECIAL = /[\u0130\u03a3]/;

/** Lower case, code point by code point. Linear in the text. */
export function fold(text: string): string {
  // For all others `toLowerCase` is the same map, some thirty times as fast as looking characters up.
  if (!SPECIAL.test(text)) return text.toLowerCase();
  const map = foldedCharacters();
  let folded = "";
  for (const character of text) {
    folded += character <= "\x7f" ? character.toLowerCase() : (map.get(character) ?? character);
  }
  return folded;
}

function makeMap(): Map<string, string> {
  const map = new Map<string, string>();
  for (let first = 0x80; first <= 0x1ffff; first += BLOCK) {
    const block = String.fromCodePoint(...Array.from({ length: BLOCK }, (_, i) => first + i));
    // Most blocks have no letters of two cases.
    if (block.toLowerCase() === block) continue;
    for (const character of block) {
      const lower = character.toLowerCase();
      if (lower !== character && String.fromCodePoint(lower.codePointAt(0)!) === lower) map.set(character, lower);
    }
  }
  return map;
}

/**
 * Each script is translated separately: `translate()` looks through its whole list for each character, so a
 * text pays only for scripts whose upper-case letters it contains. The bounds are code points; each group ends
 * below the next bound.
 */
const GROUP_BOUNDS = [0x80, 0x250, 0x400, 0x530, 0x10a0, 0x1e00, 0x1f00, 0x2100, 0x10400, 0x110000] as const;

/**
 * `CREATE OR REPLACE FUNCTION lodestone.fold(text)`: IMMUTABLE, null for null, the same as `fold`. The schema
 * must exist; the database's encoding must be UTF8. It is a single expression, so the planner can inline it.
 *
 * @param schema  quoted if need be.
 */
export function foldFunctionSql(schema = "lodestone"): string {
  const folded = [...foldedCharacters()];
  let body = `lower($1 COLLATE "C")`;
  for (let group = 0; group + 1 < GROUP_BOUNDS.length; group++) {
    const members = folded.filter(([upper]) => {
      const code = upper.codePointAt(0)!;
      return code >= GROUP_BOUNDS[group]! && code < GROUP_BOUNDS[group + 1]!;
    });
    if (members.length === 0) continue;
    const upper = members.map(([from]) => from).join("");
    const lower = members.map(([, to]) => to).join("");
    // A text without one of the group's letters passes with an empty list: the regular expression is one
    // character class, linear.
    body = `translate(${body}, CASE WHEN $1 ~ '[${upper}]' THEN '${upper}' ELSE '' END, '${lower}')`;
  }
  return `CREATE OR REPLACE FUNCTION ${schema}.fold(text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $fold$
SELECT CASE WHEN octet_length($1) = char_length($1) THEN lower($1 COLLATE "C") ELSE ${body} END
$fold$`;
}
