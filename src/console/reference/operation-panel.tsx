/**
 * One endpoint: what it accepts and returns, and a form that sends it to this server with the console's key.
 */
import type { ComponentChildren, JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { isAllowed } from "../../key-scopes.ts";
import { type Answer, apiBase, messageOf, send } from "../api/client.ts";
import { Field, submitting, TextField, useAttempt } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault } from "../parts/notice.tsx";
import { Snippets } from "../parts/snippets.tsx";
import { useKept } from "../state/kept.ts";
import { access } from "../state/page-session.ts";
import { hrefOf, route } from "../state/route.ts";
import {
  type ApiDescription,
  bodySchema,
  boundsInWords,
  exampleOf,
  type JsonSchema,
  nameOfReference,
  type Operation,
  type Parameter,
  resolve,
  typeInWords,
} from "./api-description.ts";

interface Answered extends Answer {
  /** As measured by the page. */
  readonly ms: number;
}

/** In characters of a response; a note says that there is more. */
const MOST_SHOWN = 100_000;

export function OperationPanel({ operation, api }: { operation: Operation; api: ApiDescription }): JSX.Element {
  const { parameters = [], responses } = operation;
  const { place, table } = route.value;
  const schema = bodySchema(operation);
  const [values, setValues] = useKept<Readonly<Record<string, string>>>(
    `path ${hrefOf("reference", place, table)} ${operation.operationId}`,
    () => startOf(parameters),
  );
  const [body, setBody] = useKept(`body ${operation.operationId}`, () =>
    schema === undefined ? "" : JSON.stringify(exampleOf(schema, api), null, 2),
  );
  const [bodyFault, setBodyFault] = useState("");
  const [answered, setAnswered] = useState<Answered | undefined>(undefined);
  const { fault, isBusy, attempt } = useAttempt();
  const path = pathOf(operation, values);
  const mayCall = access.value !== undefined && isAllowed(access.value.scope, operation["x-access"]);
  const snippets = useMemo(
    () => [{ name: "curl", code: curlOf(operation.method, apiBase() + path, body, access.value?.keyName !== null) }],
    [path, body],
  );

  const submit = (): Promise<void> =>
    attempt(async () => {
      setBodyFault("");
      const sent = schema === undefined || body.trim() === "" ? undefined : body;
      try {
        if (sent !== undefined) JSON.parse(sent);
      } catch (error) {
        setBodyFault(`This is not JSON: ${messageOf(error)}`);
        return;
      }
      const startedMs = performance.now();
      const answer = await send(operation.method, path, sent);
      setAnswered({ ...answer, ms: performance.now() - startedMs });
    });

  return (
    <div class="operation-body">
      <form class="schema-form" aria-label={`Try ${operation.operationId}`} onSubmit={submitting(() => void submit())}>
        {parameters.length > 0 && (
          <div class="schema-fields">
            {parameters.map((parameter) => (
              <TextField
                key={parameter.name}
                label={parameter.name}
                hint={parameter.description && withCode(parameter.description)}
                required={parameter.required === true}
                value={values[parameter.name] ?? ""}
                onInput={(text) => setValues({ ...values, [parameter.name]: text })}
              />
            ))}
          </div>
        )}
        {schema !== undefined && (
          <Field label="Body" fault={bodyFault} hint={operation.requestBody?.required === true ? undefined : "Optional."}>
            {(ids) => (
              <textarea
                {...ids}
                rows={Math.min(16, body.split("\n").length + 1)}
                spellcheck={false}
                value={body}
                onInput={(event) => setBody(event.currentTarget.value)}
              />
            )}
          </Field>
        )}
        <div class="actions">
          <button type="submit" class={operation.method === "DELETE" ? "danger" : "primary"} disabled={isBusy || !mayCall}>
            <Icon name="play" /> {isBusy ? "Waiting …" : "Send"}
          </button>
          {!mayCall && <span class="muted small">It needs a key with the scope {operation["x-access"]}.</span>}
        </div>
      </form>
      {fault !== "" && <Fault>{fault}</Fault>}
      {answered !== undefined && <AnswerText answered={answered} />}
      <Snippets label={`Request of ${operation.operationId}`} snippets={snippets} />
      {schema !== undefined && (
        <section aria-label="Fields of the body">
          <h3>Body</h3>
          <SchemaOutline schema={schema} api={api} />
        </section>
      )}
      <section aria-label="Responses">
        <h3>Responses</h3>
        <ul class="responses">
          {Object.entries(responses).map(([status, { description, content }]) => {
            const answer = content?.["application/json"]?.schema;
            return (
              <li key={status}>
                <p>
                  <code class={Number(status) < 400 ? "status good" : "status"}>{status}</code> {withCode(description)}
                </p>
                {answer !== undefined && Number(status) < 400 && <SchemaOutline schema={answer} api={api} />}
              </li>
            );
          })}
        </ul>
      </section>
    </div>
  );
}

function AnswerText({ answered: { status, text, isJson, ms } }: { answered: Answered }): JSX.Element {
  const shown = isJson ? indented(text) : text;
  return (
    <section class="stack" aria-label="Answer">
      <p role="status" class="small">
        <code class={status < 400 ? "status good" : "status bad"}>{status}</code> in {ms.toFixed(0)} ms
        {shown.length > MOST_SHOWN
          ? `, the first ${MOST_SHOWN.toLocaleString("en")} of ${shown.length.toLocaleString("en")} characters`
          : ""}
      </p>
      {shown !== "" && (
        <pre class="answer-text" role="region" tabIndex={0} aria-label="Body of the answer">
          {shown.slice(0, MOST_SHOWN)}
        </pre>
      )}
    </section>
  );
}

/** The current place, as far as the address shows it. */
function startOf(parameters: readonly Parameter[]): Record<string, string> {
  const { place, table } = route.value;
  const here: Readonly<Record<string, string | undefined>> = { db: place?.database, branch: place?.branch, table, workspace: "local" };
  return Object.fromEntries(parameters.flatMap(({ name }) => (here[name] === undefined ? [] : [[name, here[name]]])));
}

/** What stands between backticks in the description is code. */
const withCode = (text: string): ComponentChildren =>
  text.split("`").map((piece, i) => (i % 2 === 1 ? <code key={i}>{piece}</code> : piece));

interface SchemaOutlineProps {
  schema: JsonSchema;
  api: ApiDescription;
  /** Names of the enclosing schemas: one that contains itself is named and not opened. */
  within?: readonly string[];
}

/**
 * A JSON Schema as an outline: members, their types, and their bounds. Named schemas open where they are
 * used.
 */
export function SchemaOutline({ schema, api, within = [] }: SchemaOutlineProps): JSX.Element {
  const shown = resolve(schema, api);
  const inside = schema.$ref === undefined ? within : [...within, nameOfReference(schema.$ref)];
  const choices = shown.anyOf ?? shown.oneOf;
  const members = Object.entries(shown.properties ?? {});
  return (
    <div class="outline">
      {shown.description !== undefined && <p class="muted small">{withCode(shown.description)}</p>}
      {choices?.map((choice, i) => (
        <SchemaOutline key={i} schema={choice} api={api} within={inside} />
      ))}
      {choices === undefined && members.length === 0 && <p class="small code">{typeInWords(shown)}</p>}
      {members.length > 0 && (
        <ul>
          {members.map(([name, member]) => (
            <Member key={name} name={name} member={member} isRequired={shown.required?.includes(name) === true} api={api} within={inside} />
          ))}
        </ul>
      )}
    </div>
  );
}

interface MemberProps {
  name: string;
  member: JsonSchema;
  isRequired: boolean;
  api: ApiDescription;
  within: readonly string[];
}

function Member({ name, member, isRequired, api, within }: MemberProps): JSX.Element {
  const bounds = boundsInWords(member);
  const inner = member.type === "array" && member.items !== undefined ? member.items : member;
  const isOpenable =
    !(inner.$ref !== undefined && within.includes(nameOfReference(inner.$ref))) &&
    (resolve(inner, api).properties !== undefined || (inner.$ref !== undefined && resolve(inner, api).description !== undefined));
  return (
    <li>
      <p>
        <code class="member">{name}</code> <span class="type">{typeInWords(member)}</span>
        {isRequired && <span class="required"> required</span>}
        {bounds !== "" && <span class="type"> · {bounds}</span>}
      </p>
      {member.description !== undefined && <p class="muted small">{withCode(member.description)}</p>}
      {isOpenable && (
        <details>
          <summary class="small">{inner.$ref === undefined ? "Fields" : nameOfReference(inner.$ref)}</summary>
          <SchemaOutline schema={inner} api={api} within={within} />
        </details>
      )}
    </li>
  );
}

/** @param values of path and query parameters by name; a query parameter without one is left out. */
function pathOf({ path, parameters = [] }: Operation, values: Readonly<Record<string, string>>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const query = parameters
    .filter((parameter) => parameter.in === "query" && (values[parameter.name] ?? "") !== "")
    .map(({ name }) => `${name}=${encodeURIComponent(values[name] as string)}`);
  return query.length === 0 ? filled : `${filled}?${query.join("&")}`;
}

/** The key itself is never part of it. */
function curlOf(method: string, url: string, body: string, asksForKey: boolean): string {
  const lines = [`curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  if (asksForKey) lines.push(`-H 'Authorization: Bearer <key>'`);
  if (body.trim() !== "") lines.push("-H 'Content-Type: application/json'", `-d ${quoted(body.trim())}`);
  return lines.join(" \\\n  ");
}

/** For a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Indents JSON without parsing it: parsed and written again, long numbers would lose digits. */
function indented(json: string): string {
  let [depth, text] = [0, ""];
  const newLine = (): string => `\n${"  ".repeat(depth)}`;
  for (const [token] of json.matchAll(/"[^"\\]*(?:\\.[^"\\]*)*"|[{[]\s*[}\]]|[{}[\],:]|[^\s{}[\],:"]+/g)) {
    if (token === "{" || token === "[") {
      depth++;
      text += token + newLine();
    } else if (token === "}" || token === "]") {
      depth--;
      text += newLine() + token;
    } else if (token === ",") text += token + newLine();
    else text += token === ":" ? ": " : token;
  }
  return text;
}
