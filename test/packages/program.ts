/**
 * The program that every toolchain builds and runs, and the oracle's results for it: both kinds of index are
 * filled, changed, saved, loaded and searched. It is text, because it is written into the projects of the
 * tests. It does not use the library's own helpers, so each runtime computes the data itself.
 */
import { referenceSearch, SIMILARITIES } from "../reference.ts";

const DIMENSION = 19;

/** Integer arithmetic: the same numbers in every engine. */
function vectorOf(i: number): number[] {
  return Array.from({ length: DIMENSION }, (_, j) => (((i + 1) * 40503 + (j + 1) * 9973 + (i + 3) * (j + 7) * 31) % 65521) / 65521 - 0.5);
}

const BODY = `
const SIMILARITIES = ${JSON.stringify(SIMILARITIES)};
const DIMENSION = ${DIMENSION};
${vectorOf}

async function fill(index) {
  await index.upsertMany(Array.from({ length: 300 }, (_, i) => "id" + i), Float32Array.from(Array.from({ length: 300 }, (_, i) => vectorOf(i)).flat()));
  for (let i = 0; i < 300; i += 7) await index.delete("id" + i);
  for (let i = 0; i < 28; i++) await index.upsert("id" + i * 11, vectorOf(5000 + i));
}

async function answersOf(index) {
  const answers = [];
  for (const similarity of SIMILARITIES) answers.push(await index.search(vectorOf(1000), { k: 12, similarity }));
  return answers;
}

async function run() {
  const one = await VectorIndex.create({ dimension: DIMENSION });
  await fill(one);
  const copy = await VectorIndex.fromBytes(one.toBytes());
  const result = { build: copy.build, answers: await answersOf(copy), parallel: undefined };
  try {
    const many = await ParallelVectorIndex.create({ dimension: DIMENSION, shards: 2 });
    await fill(many);
    result.parallel = { build: many.build, answers: await answersOf(many) };
    await many.free();
  } catch (error) {
    if (!(error instanceof LodestoneError) || error.code !== "UNAVAILABLE") throw error;
    result.parallel = { unavailable: error.message };
  }
  return result;
}
`;

const NAMES = "LodestoneError, ParallelVectorIndex, VectorIndex";
export const ESM_PROGRAM = `import { ${NAMES} } from "lodestone";\n${BODY}\nexport { run };\n`;
export const CJS_PROGRAM = `const { ${NAMES} } = require("lodestone");\n${BODY}\nmodule.exports = { run };\n`;

/** For pages: the outcome becomes a property of the window. */
export const PAGE_MAIN = `import { run } from "./program.js";
run().then(
  (result) => { globalThis.outcome = { result }; },
  (error) => { globalThis.outcome = { failure: String(error && error.stack || error) }; },
);
`;

/** For runtimes with a console. Ends the process itself, since a leftover worker must not keep it alive. */
export const CONSOLE_MAIN = `import { run } from "./program.js";
console.log("OUTCOME " + JSON.stringify(await run()));
`;

export interface ProgramResult {
  build: string;
  answers: unknown;
  parallel: { build: string; answers: unknown } | { unavailable: string };
}

export function expectedAnswers(): unknown {
  const model = new Map(Array.from({ length: 300 }, (_, i) => [`id${i}`, vectorOf(i)]));
  for (let i = 0; i < 300; i += 7) model.delete(`id${i}`);
  for (let i = 0; i < 28; i++) model.set(`id${i * 11}`, vectorOf(5000 + i));
  return SIMILARITIES.map((similarity) => referenceSearch(model, vectorOf(1000), { k: 12, similarity }));
}
