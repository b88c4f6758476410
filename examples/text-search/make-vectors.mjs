/**
 * Makes vectors.json, beforehand: a vector for each word and each text, from the texts alone (latent semantic analysis: positive pointwise mutual information of
 * words and texts, and its singular vectors; Deerwester et al. 1990). A large collection takes its vectors from a model instead; the page stays the same.
 * `npm install ml-matrix && node make-vectors.mjs`
 */
import { readFileSync, writeFileSync } from "node:fs";
import { Matrix, SingularValueDecomposition } from "ml-matrix";
import { words } from "./words.js";

const DIMENSION = 12;
const texts = JSON.parse(readFileSync(new URL("texts.json", import.meta.url), "utf8"));
const vocabulary = [...new Set(texts.flatMap(words))].sort();
const counts = texts.map((text) => vocabulary.map((word) => words(text).filter((own) => own === word).length));
const total = counts.flat().reduce((sum, count) => sum + count, 0);
const inText = counts.map((row) => row.reduce((sum, count) => sum + count, 0));
const ofWord = vocabulary.map((_, j) => counts.reduce((sum, row) => sum + row[j], 0));
const information = new Matrix(
  counts.map((row, i) => row.map((count, j) => (count === 0 ? 0 : Math.max(0, Math.log((count * total) / (inText[i] * ofWord[j])))))),
);
const { rightSingularVectors } = new SingularValueDecomposition(information, { autoTranspose: true });
const wordVectors = vocabulary.map((_, j) =>
  Array.from({ length: DIMENSION }, (_, d) => Number(rightSingularVectors.get(j, d).toFixed(5))),
);
writeFileSync(
  new URL("vectors.json", import.meta.url),
  `${JSON.stringify({ dimension: DIMENSION, words: Object.fromEntries(vocabulary.map((word, j) => [word, wordVectors[j]])) })}\n`,
);
