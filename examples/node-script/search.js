/** An index with values beside its vectors: filtered, saved to a file piece by piece, loaded again, and searched for words, too. */
import { createReadStream } from "node:fs";
import { rename, writeFile } from "node:fs/promises";
import { TextColumns, VectorIndex } from "lodestone";

const columns = () => new TextColumns({ title: "string", year: "int", tags: "multiple" });

// What a film feels like: tense, funny, sad. Yours come from a model and have some hundred dimensions.
const films = [
  ["alien", [0.9, 0.1, 0.2], { title: "Alien", year: 1979, tags: ["space", "horror"] }],
  ["airplane", [0.1, 0.9, 0.1], { title: "Airplane!", year: 1980, tags: ["comedy"] }],
  ["the-thing", [0.8, 0.1, 0.3], { title: "The Thing", year: 1982, tags: ["horror"] }],
  ["amelie", [0.1, 0.6, 0.5], { title: "Amélie", year: 2001, tags: ["comedy", "romance"] }],
  ["gravity", [0.9, 0.1, 0.4], { title: "Gravity", year: 2013, tags: ["space"] }],
];

const index = await VectorIndex.create({ dimension: 3, columns: columns() });
for (const [id, vector, values] of films) index.upsert(id, vector, values);

// Written under another name first, so that a file with this name is always complete.
await writeFile("films.lodestone.new", index.toStream());
await rename("films.lodestone.new", "films.lodestone");

const loaded = await VectorIndex.fromStream(createReadStream("films.lodestone"), { columns: columns() });
const { results } = loaded.search([1, 0, 0], {
  k: 3,
  filter: { year: { $ge: 1980 }, $any: [{ tags: { $includes: "space" } }, { tags: { $includes: "horror" } }] },
  columns: ["title", "year"],
});
for (const { score, columns: film } of results) console.log(score.toFixed(4), film.title, film.year);

// Words and a vector in one search: "airplan" is one edit away from a title, and the vector finds the others.
const both = loaded.search({ text: "airplan", vector: [0.9, 0.1, 0.4], k: 2, columns: ["title"], explain: true });
for (const { score, columns: film, explanation } of both.results) {
  console.log(
    score.toFixed(2),
    film.title,
    `words ${explanation.text.contribution.toFixed(2)}, vector ${explanation.vector.contribution.toFixed(2)}`,
  );
}
