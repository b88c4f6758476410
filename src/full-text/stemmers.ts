/** Stemmers by the English name of the language. Each is loaded when the first search asks for it. */
import type { Language } from "../text/languages.ts";
import type { Stemmer } from "./terms.ts";

const LOADERS: Readonly<Record<Language, () => Promise<{ readonly stemmer: Stemmer }>>> = {
  arabic: () => import("@orama/stemmers/arabic"),
  armenian: () => import("@orama/stemmers/armenian"),
  bulgarian: () => import("@orama/stemmers/bulgarian"),
  danish: () => import("@orama/stemmers/danish"),
  dutch: () => import("@orama/stemmers/dutch"),
  // Orama's makes "connec" of connection and "connect" of connected.
  english: () => import("stemmer"),
  finnish: () => import("@orama/stemmers/finnish"),
  french: () => import("@orama/stemmers/french"),
  german: () => import("@orama/stemmers/german"),
  greek: () => import("@orama/stemmers/greek"),
  hungarian: () => import("@orama/stemmers/hungarian"),
  indian: () => import("@orama/stemmers/indian"),
  indonesian: () => import("@orama/stemmers/indonesian"),
  irish: () => import("@orama/stemmers/irish"),
  italian: () => import("@orama/stemmers/italian"),
  lithuanian: () => import("@orama/stemmers/lithuanian"),
  nepali: () => import("@orama/stemmers/nepali"),
  norwegian: () => import("@orama/stemmers/norwegian"),
  portuguese: () => import("@orama/stemmers/portuguese"),
  romanian: () => import("@orama/stemmers/romanian"),
  russian: () => import("@orama/stemmers/russian"),
  sanskrit: () => import("@orama/stemmers/sanskrit"),
  serbian: () => import("@orama/stemmers/serbian"),
  spanish: () => import("@orama/stemmers/spanish"),
  swedish: () => import("@orama/stemmers/swedish"),
  tamil: () => import("@orama/stemmers/tamil"),
  turkish: () => import("@orama/stemmers/turkish"),
  ukrainian: () => import("@orama/stemmers/ukrainian"),
};

export async function loadStemmer(language: Language): Promise<Stemmer> {
  return (await LOADERS[language]()).stemmer;
}

/** Of each of the languages; undefined: none. */
export async function loadStemmers(languages: Iterable<Language | undefined>): Promise<ReadonlyMap<Language | undefined, Stemmer>> {
  const named = [...new Set(languages)].filter((language) => language !== undefined);
  return new Map(await Promise.all(named.map(async (language): Promise<[Language, Stemmer]> => [language, await loadStemmer(language)])));
}
