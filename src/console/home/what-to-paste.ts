/** The same search in four languages, for the current place. Each runs as pasted. */
import { apiBase, type Place, tablePath } from "../api/client.ts";
import type { Snippet } from "../parts/snippets.tsx";
import { access } from "../state/page-session.ts";
import type { TableSchema } from "../state/server-content.ts";

export function snippetsFor(place: Place, table: TableSchema): readonly Snippet[] {
  const column = table.columns.find(({ type }) => type === "vector");
  const search: Search = {
    place,
    table: table.name,
    url: apiBase() + tablePath(place, table.name),
    column: column?.name ?? "",
    dimension: column?.vector?.dimension ?? 0,
    asksForKey: access.value?.keyName !== null,
  };
  if (column === undefined) return [{ name: "curl", code: curlCommand(search, "query", `'{"page": {"size": 5}}'`) }];
  return [
    { name: "curl", code: curl(search) },
    { name: "TypeScript", code: typescript(search) },
    { name: "Python", code: python(search) },
    { name: "Library", code: library(search) },
  ];
}

/** How an empty server gets its first table and record. */
export function firstSnippets(): readonly Snippet[] {
  const url = `${apiBase()}/db/data:main`;
  const columns = `{"columns": [{"name": "title", "type": "string"}, {"name": "embedding", "type": "vector", "vector": {"dimension": 3}}]}`;
  const record = `{"title": "first", "embedding": [1, 2, 3]}`;
  const asksForKey = access.value?.keyName !== null;
  const key = asksForKey ? `  -H "Authorization: Bearer $LODESTONE_API_KEY" ` : "  ";
  const put = (path: string, data: string): string =>
    `curl -s -X PUT '${url}${path}' \\\n${key}-H 'Content-Type: application/json' \\\n  -d '${data}'`;
  return [
    { name: "curl", code: [put("", "{}"), put("/tables/items", columns), put("/tables/items/data/one", record)].join("\n") },
    {
      name: "Python",
      code: `import json, ${asksForKey ? "os, " : ""}urllib.request

def put(path, value):
    request = urllib.request.Request(
        "${url}" + path,
        data=json.dumps(value).encode(),
        headers={"Content-Type": "application/json"${asksForKey ? ', "Authorization": "Bearer " + os.environ["LODESTONE_API_KEY"]' : ""}},
        method="PUT",
    )
    return urllib.request.urlopen(request).read().decode()

put("", {})
put("/tables/items", ${columns})
print(put("/tables/items/data/one", ${record}))`,
    },
    {
      name: "Command line",
      code: `lodestone import items.csv data:main/items --create --url ${apiBase()}`,
    },
  ];
}

interface Search {
  readonly place: Place;
  readonly table: string;
  readonly url: string;
  readonly column: string;
  readonly dimension: number;
  readonly asksForKey: boolean;
}

/** Element of the query vector, which readers replace by their own. */
const ELEMENT = "0.1";
/** Longer vectors are generated, not written out. */
const MAX_WRITTEN = 3;

const written = (dimension: number): string => `[${Array(dimension).fill(ELEMENT).join(", ")}]`;

const javascriptVector = (dimension: number): string =>
  dimension <= MAX_WRITTEN ? written(dimension) : `Array(${dimension}).fill(${ELEMENT})`;

function curlCommand({ url, asksForKey }: Search, endpoint: string, data: string): string {
  return [
    `curl -s '${url}/${endpoint}' \\`,
    ...(asksForKey ? [`  -H "Authorization: Bearer $LODESTONE_API_KEY" \\`] : []),
    "  -H 'Content-Type: application/json' \\",
    `  -d ${data}`,
  ].join("\n");
}

/** A long vector in a shell: many equal lines, joined by commas. */
function curl(search: Search): string {
  const { column, dimension } = search;
  const vector = dimension <= MAX_WRITTEN ? written(dimension) : `['"$(yes ${ELEMENT} | head -n ${dimension} | paste -s -d , -)"']`;
  return curlCommand(search, "vectorSearch", `'{"column": ${JSON.stringify(column)}, "queryVector": ${vector}, "size": 10}'`);
}

/** The SDK requires a host that begins with a workspace's name; `*.localhost` is also this machine. */
function typescript({ place, table, column, dimension, asksForKey }: Search): string {
  const { hostname, port } = new URL(apiBase());
  const isLocal = hostname.startsWith("127.") || hostname === "localhost";
  return `import { BaseClient } from "@xata.io/client";

const client = new BaseClient({
  databaseURL: "${isLocal ? `http://any.where.localhost:${port}` : apiBase()}/db/${place.database}",
  branch: "${place.branch}",
  apiKey: ${asksForKey ? "process.env.LODESTONE_API_KEY" : '"none"'},
});
const queryVector = ${javascriptVector(dimension)};
const { records } = await client.db[${JSON.stringify(table)}].vectorSearch(${JSON.stringify(column)}, queryVector, { size: 10 });
for (const record of records) console.log(record.id, record.getMetadata().score);`;
}

function python({ url, column, dimension, asksForKey }: Search): string {
  const vector = dimension <= MAX_WRITTEN ? written(dimension) : `[${ELEMENT}] * ${dimension}`;
  const key = asksForKey ? `, "Authorization": "Bearer " + os.environ["LODESTONE_API_KEY"]` : "";
  return `import json, ${asksForKey ? "os, " : ""}urllib.request

query_vector = ${vector}
request = urllib.request.Request(
    ${JSON.stringify(`${url}/vectorSearch`)},
    data=json.dumps({"column": ${JSON.stringify(column)}, "queryVector": query_vector, "size": 10}).encode(),
    headers={"Content-Type": "application/json"${key}},
)
for result in json.load(urllib.request.urlopen(request))["results"]:
    print(result["id"], result["score"])`;
}

function library({ dimension }: Search): string {
  return `import { VectorIndex } from "lodestone";

const index = await VectorIndex.create({ dimension: ${dimension} });
index.upsert("a", ${javascriptVector(dimension)});
const { results } = index.search(${javascriptVector(dimension)}, { k: 10 });
console.log(results);`;
}
