/**
 * A table that is searched in the page, at each key, and is always current. Start the server with
 * `npm start -- --demo --cors-origin http://localhost:5173` in Lodestone's clone, this page with `npx vite`, and open it in two windows:
 * rename a colour in one, and see it in the other. Switch the network off: it still answers, and says that it is offline.
 */
import { IndexedDbReplicaStore, Replica } from "lodestone";

const server = new URLSearchParams(location.search).get("server") ?? "http://localhost:8787";
const branch = `${server}/db/demo:main`;
const element = (id) => document.querySelector(`#${id}`);

/** A colour that the results shall look like: its id. */
let like;
let replica;

replica = await Replica.open({
  url: branch,
  table: "colors",
  columns: ["lab", "name", "hex", "family"],
  words: true,
  // The windows of this page share one replica and one connection, and the next visit begins with what is kept.
  store: new IndexedDbReplicaStore("live-search"),
  onStatus: showStatus,
  onChange: () => void show(),
}).catch((error) => fail(error));

function showStatus({ phase, reason, bytes }) {
  element("status").textContent = [phase, bytes && `${bytes} bytes`, reason].filter(Boolean).join(", ");
}

function fail(error) {
  element("error").textContent = error.message;
  throw error;
}

async function show() {
  if (replica === undefined) return;
  const family = element("family").value;
  const vector = like === undefined ? undefined : await replica.vector(like);
  const { results } = await replica.search({
    text: element("words").value,
    prefix: true,
    k: 12,
    columns: ["name", "hex", "family"],
    ...(vector && { vector, similarity: "l2" }),
    ...(family && { filter: { family } }),
  });
  element("anywhere").hidden = like === undefined;
  element("anywhere").textContent = `like ${like} ×`;
  element("results").replaceChildren(...results.map(({ id, columns }) => rowOf(id, columns)));
}

function rowOf(id, { name, hex, family }) {
  const [item, colour, text, rename] = ["li", "button", "span", "button"].map((tag) => document.createElement(tag));
  colour.style.background = hex;
  colour.title = "colours like this";
  colour.onclick = () => {
    like = id;
    void show();
  };
  text.textContent = `${name} (${family})`;
  rename.textContent = "rename";
  rename.onclick = () => void renameTo(id, prompt("Its name", name));
  item.append(colour, text, rename);
  return item;
}

/** Reads its own write: the answer says where in the changes it is. */
async function renameTo(id, name) {
  if (name === null) return;
  const response = await fetch(`${branch}/tables/colors/data/${encodeURIComponent(id)}`, {
    method: "PATCH",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ name }),
  }).catch((error) => fail(error));
  element("error").textContent = response.ok ? "" : (await response.json()).message;
  await replica.current(response.headers.get("Lodestone-Read"));
  await show();
}

const { results } = await replica.search({ text: "", k: 1000, columns: ["family"] });
const families = [...new Set(results.map(({ columns }) => columns.family))].sort();
element("family").append(...families.map((family) => new Option(family)));
for (const id of ["words", "family"]) element(id).addEventListener("input", show);
element("anywhere").onclick = () => {
  like = undefined;
  void show();
};
showStatus(replica.status);
await show();
