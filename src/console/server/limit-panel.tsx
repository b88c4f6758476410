/** The server's limits: those that all requests share, from its metrics; those of one request, from its API description. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call, messageOf } from "../api/client.ts";
import { sizeInWords } from "../parts/bytes.ts";
import { Fault } from "../parts/notice.tsx";
import { type ApiDescription, bodySchema, type JsonSchema, operationsOf, resolve } from "../reference/api-description.ts";
import { type Metrics, total } from "./metrics-text.ts";

const plain = (value: number): string => value.toLocaleString("en");

/** Of all requests together; beyond it the answer is 429. */
const SHARED = [
  { name: "Requests at once", metric: "lodestone_http_requests_limit", inWords: plain },
  { name: "Bodies at once", metric: "lodestone_http_body_bytes_limit", inWords: sizeInWords },
  { name: "Answers at once", metric: "lodestone_answer_memory_limit_bytes", inWords: sizeInWords },
] as const;

/** Of one request; beyond it the answer is 400. `member` leads to it in the body; "[]" are the elements of a list. */
const OWN = [
  { name: "Records of a page", operationId: "queryRecords", member: "page.size" },
  { name: "Results of a vector search", operationId: "vectorSearch", member: "size" },
  { name: "Queries of a vector search", operationId: "vectorSearch", member: "queryVectors" },
  { name: "Operations of a transaction", operationId: "runTransaction", member: "operations" },
  { name: "Records of a bulk insert", operationId: "insertRecords", member: "records" },
  { name: "Columns of a table", operationId: "createTable", member: "columns" },
  { name: "Dimensions of a vector", operationId: "createTable", member: "columns.[].vector.dimension" },
] as const;

export function LimitPanel({ metrics }: { metrics: Metrics }): JSX.Element {
  const [api, setApi] = useState<ApiDescription | undefined>(undefined);
  const [fault, setFault] = useState("");
  useEffect(() => {
    call<ApiDescription>("GET", "/openapi.json").then(setApi, (error: unknown) => setFault(messageOf(error)));
  }, []);
  const shared = SHARED.map(({ name, metric, inWords }) => ({ name, value: total(metrics, metric), inWords }));
  const own = OWN.map(({ name, ...where }) => ({ name, value: api && mostOf(api, where), inWords: plain }));
  return (
    <section class="card schema-panel" aria-label="Limits">
      <h2>Limits</h2>
      {fault !== "" && <Fault>{fault}</Fault>}
      <dl class="limits">
        {[...shared, ...own].map(
          ({ name, value, inWords }) =>
            value !== undefined && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{inWords(value)}</dd>
              </div>
            ),
        )}
      </dl>
      <p class="muted small">
        All limits, including time limits, are in <code>docs/limits.md</code>; how to run and monitor a server is in{" "}
        <code>docs/reliability.md</code>.
      </p>
    </section>
  );
}

/** undefined: the description does not contain it. */
function mostOf(api: ApiDescription, { operationId, member }: { operationId: string; member: string }): number | undefined {
  const operation = operationsOf(api).find((other) => other.operationId === operationId);
  let schema: JsonSchema | undefined = operation && bodySchema(operation);
  for (const name of member.split(".")) {
    const { items, properties }: JsonSchema = schema === undefined ? {} : resolve(schema, api);
    schema = name === "[]" ? items : properties?.[name];
  }
  return schema?.maximum ?? schema?.maxItems;
}
