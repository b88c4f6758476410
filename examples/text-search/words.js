/** The words of a text that say something, without most endings. */
const COMMON = new Set(
  "a after again all alone an and at before but by for from get got had has he her his how if in into is it its last like little no of off on or so that the their them then this through to two until was way we when where which while who with you".split(
    " ",
  ),
);

export function words(text) {
  return (text.toLowerCase().match(/[a-z]+/g) ?? [])
    .filter((word) => word.length > 2 && !COMMON.has(word))
    .map((word) => word.replace(/(?:ing|ed|es|s)$/, ""));
}
