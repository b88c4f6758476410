/** Languages whose stems are known, by their English names (full-text/stemmers.ts has the stemmers). */
export const LANGUAGES = [
  "arabic",
  "armenian",
  "bulgarian",
  "danish",
  "dutch",
  "english",
  "finnish",
  "french",
  "german",
  "greek",
  "hungarian",
  "indian",
  "indonesian",
  "irish",
  "italian",
  "lithuanian",
  "nepali",
  "norwegian",
  "portuguese",
  "romanian",
  "russian",
  "sanskrit",
  "serbian",
  "spanish",
  "swedish",
  "tamil",
  "turkish",
  "ukrainian",
] as const;
export type Language = (typeof LANGUAGES)[number];

/** In place of a language: words are compared as they are. */
export const NO_LANGUAGE = "none";
export const LANGUAGES_OR_NONE = [...LANGUAGES, NO_LANGUAGE] as const;
export type LanguageOrNone = (typeof LANGUAGES_OR_NONE)[number];
