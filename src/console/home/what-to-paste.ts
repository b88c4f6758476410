/** The same search in four languages, for the place where one is. */
import { apiBase } from "../api/client.ts";
import { type Place, tablePath } from "../api/paths.ts";
import type { Snippet } from "../parts/snippets.tsx";
import type { TableSchema } from "../state/catalog.ts";
import { access } from "../state/session.ts";

/** Longer vectors are shown by their first elements. */
const SHOWN_ELEMENTS = 3;

export function snippetsFor(place: Place, table: TableSchema): readonly Snippet[] {
  const column = table.columns.find(({ type }) => type === "vector");
  const dimension = column?.vector?.dimension ?? 0;
  const url = apiBase() + tablePath(place, table.name);
  const asksForKey = access.value?.keyName !== null;
  if (column === undefined) {
    const header = asksForKey ? " -H 'Authorization: Bearer <key>'" : "";
    return [{ name: "curl", code: `curl -s '${url}/query'${header} \\\n  -H 'Content-Type: application/json' -d '{"page": {"size": 5}}'` }];
  }
  const isShort = dimension <= SHOWN_ELEMENTS;
  const vector = isShort ? `[${Array(dimension).fill("0.1").join(", ")}]` : `[0.1, 0.2, …]`;
  const said = isShort ? "" : `, ${dimension} numbers`;
  return [
    { name: "curl", code: curl(url, column.name, vector, asksForKey) },
    { name: "TypeScript", code: typescript(place, table.name, column.name, vector, said, asksForKey) },
    { name: "Python", code: python(url, column.name, vector, said, asksForKey) },
    { name: "Library", code: library(dimension, vector) },
  ];
}

function curl(url: string, column: string, vector: string, asksForKey: boolean): string {
  return [
    `curl -s '${url}/vectorSearch' \\`,
    ...(asksForKey ? ["  -H 'Authorization: Bearer <key>' \\"] : []),
    "  -H 'Content-Type: application/json' \\",
    `  -d '${JSON.stringify({ column }).slice(0, -1)}, "queryVector": ${vector}, "size": 10}'`,
  ].join("\n");
}

function typescript(place: Place, table: string, column: string, vector: string, said: string, asksForKey: boolean): string {
  const { host, port } = new URL(apiBase());
  const address = host.startsWith("127.") || host.startsWith("localhost") ? `http://any.where.localhost:${port}` : apiBase();
  return `import { BaseClient } from "@xata.io/client";

const client = new BaseClient({
  databaseURL: "${address}/db/${place.database}",
  branch: "${place.branch}",
  apiKey: ${asksForKey ? "process.env.LODESTONE_API_KEY" : '"none"'},
});
const queryVector = ${vector};${said === "" ? "" : ` //${said.slice(1)}`}
const { records } = await client.db[${JSON.stringify(table)}].vectorSearch(${JSON.stringify(column)}, queryVector, { size: 10 });
for (const record of records) console.log(record.id, record.getMetadata().score);`;
}

function python(url: string, column: string, vector: string, said: string, asksForKey: boolean): string {
  return `import json, urllib.request

query_vector = ${vector}${said === "" ? "" : `  #${said.slice(1)}`}
request = urllib.request.Request(
    ${JSON.stringify(`${url}/vectorSearch`)},
    data=json.dumps({"column": ${JSON.stringify(column)}, "queryVector": query_vector, "size": 10}).encode(),
    headers={"Content-Type": "application/json"${asksForKey ? ', "Authorization": "Bearer <key>"' : ""}},
)
for result in json.load(urllib.request.urlopen(request))["results"]:
    print(result["id"], result["score"])`;
}

function library(dimension: number, vector: string): string {
  return `import { VectorIndex } from "lodestone";

const index = await VectorIndex.create({ dimension: ${dimension} });
index.upsert("a", ${vector});
const { results } = index.search(${vector}, { k: 10 });`;
}
