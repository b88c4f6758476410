/**
 * Prints the five colours nearest to one, and prints them again whenever that changes: `node nearest.js rebeccapurple [SERVER]`, with a
 * server that has the demo (`npm start -- --demo` in Lodestone's clone). What it has is kept in ./replicas for the next start.
 */
import { FolderReplicaStore, Replica } from "lodestone";

const [id = "rebeccapurple", server = "http://localhost:8787"] = process.argv.slice(2);
let printed;
let replica;

async function print() {
  const vector = await replica.vector(id);
  if (vector === undefined) return console.log(`There is no colour "${id}".`);
  const { results } = await replica.search(vector, { k: 5, similarity: "l2", columns: ["name"] });
  const line = results.map(({ columns }) => columns.name).join(", ");
  if (line !== printed) console.log(line);
  printed = line;
}

replica = await Replica.open({
  url: `${server}/db/demo:main`,
  table: "colors",
  columns: ["lab", "name"],
  store: new FolderReplicaStore("replicas"),
  onStatus: ({ phase, reason }) => reason !== undefined && console.error(`${phase}: ${reason}`),
  onChange: () => replica !== undefined && void print(),
});
await replica.current();
await print();
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => void replica.close());
