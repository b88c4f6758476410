/**
 * The API, from the server's own `/openapi.json`: every endpoint to read and to try. Written here, because the
 * maintained viewers do not fit this page: their styles are in attributes, which its policy refuses, or they are
 * several times the size of the whole console.
 */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { call, messageOf } from "../api/client.ts";
import { TextField } from "../parts/form.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { connection } from "../state/page-session.ts";
import { route, tell } from "../state/route.ts";
import { type ApiDescription, nameOfReference, type Operation, operationsOf } from "./api-description.ts";
import { OperationPanel, SchemaOutline } from "./operation-panel.tsx";

export function ReferenceView(): JSX.Element {
  const [api, setApi] = useState<ApiDescription | undefined>(undefined);
  const [fault, setFault] = useState("");
  const [wanted, setWanted] = useState("");
  const isUp = connection.value === "up";
  useEffect(() => {
    if (api !== undefined || !isUp) return;
    setFault("");
    call<ApiDescription>("GET", "/openapi.json").then(setApi, (error: unknown) => setFault(messageOf(error)));
  }, [isUp]);
  if (fault !== "") return <Fault>{fault}</Fault>;
  if (api === undefined) return <Waiting what="Loading …" />;
  const found = operationsOf(api).filter((operation) => isAbout(operation, wanted));
  const tags = api.tags.map(({ name }) => name).filter((tag) => found.some(({ tags: own }) => own.includes(tag)));
  return (
    <div class="stack reference">
      <div class="heading">
        <h2>Every endpoint, to read and to try</h2>
        <a href="openapi.json">openapi.json</a>
      </div>
      <TextField
        label="Find"
        hint={counted(found.length, "endpoint")}
        type="search"
        placeholder="vectorSearch, branch, DELETE …"
        value={wanted}
        onInput={setWanted}
      />
      {tags.map((tag) => (
        <section key={tag} class="stack" aria-label={tag}>
          <h2>{tag}</h2>
          <div class="card operations">
            {found
              .filter(({ tags: own }) => own.includes(tag))
              .map((operation) => (
                <OperationLine key={operation.operationId} operation={operation} api={api} />
              ))}
          </div>
        </section>
      ))}
      {wanted === "" && <Schemas api={api} />}
    </div>
  );
}

function isAbout({ method, path, operationId, summary }: Operation, wanted: string): boolean {
  const text = `${method} ${path} ${operationId} ${summary}`.toLowerCase();
  return wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

function OperationLine({ operation, api }: { operation: Operation; api: ApiDescription }): JSX.Element {
  const { method, path, summary, operationId } = operation;
  const line = useRef<HTMLDetailsElement>(null);
  const [wasOpened, setOpened] = useState(false);
  const isTold = route.value.params.endpoint === operationId;
  useEffect(() => {
    if (!isTold || line.current?.open !== false) return;
    line.current.open = true;
    line.current.scrollIntoView({ block: "start" });
  }, [isTold]);
  function toggle(isOpen: boolean): void {
    if (isOpen) setOpened(true);
    // The address has the one that was opened last.
    if (isOpen && !isTold) tell({ endpoint: operationId }, true);
    else if (!isOpen && isTold) tell({ endpoint: undefined }, true);
  }
  return (
    <details ref={line} class="operation" onToggle={(event) => toggle(event.currentTarget.open)}>
      <summary>
        <span class={`method ${method.toLowerCase()}`}>{method}</span>
        <code class="operation-path">{path}</code>
        <span class="muted small">{summary}</span>
      </summary>
      {wasOpened && <OperationPanel operation={operation} api={api} />}
    </details>
  );
}

function Schemas({ api }: { api: ApiDescription }): JSX.Element {
  return (
    <section class="stack" aria-label="Schemas">
      <h2>Schemas</h2>
      <div class="card operations">
        {Object.keys(api.components.schemas).map((name) => (
          <details key={name} class="operation">
            <summary>
              <code>{nameOfReference(name)}</code>
            </summary>
            <div class="operation-body">
              <SchemaOutline schema={{ $ref: `#/components/schemas/${name}` }} api={api} />
            </div>
          </details>
        ))}
      </div>
    </section>
  );
}
