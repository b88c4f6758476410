/**
 * A JSON Schema as an outline: members, their types, and their bounds. Named schemas open where they are
 * used.
 */
import type { JSX } from "preact";
import { type ApiDescription, boundsInWords, type JsonSchema, nameOfReference, resolve, typeInWords } from "./api-description.ts";

interface SchemaOutlineProps {
  schema: JsonSchema;
  api: ApiDescription;
  /** Names of the enclosing schemas: one that contains itself is named and not opened. */
  within?: readonly string[];
}

export function SchemaOutline({ schema, api, within = [] }: SchemaOutlineProps): JSX.Element {
  const shown = resolve(schema, api);
  const inside = schema.$ref === undefined ? within : [...within, nameOfReference(schema.$ref)];
  const choices = shown.anyOf ?? shown.oneOf;
  const members = Object.entries(shown.properties ?? {});
  return (
    <div class="outline">
      {shown.description !== undefined && <p class="muted small">{shown.description}</p>}
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
      {member.description !== undefined && <p class="muted small">{member.description}</p>}
      {isOpenable && (
        <details>
          <summary class="small">{inner.$ref === undefined ? "Its members" : nameOfReference(inner.$ref)}</summary>
          <SchemaOutline schema={inner} api={api} within={within} />
        </details>
      )}
    </li>
  );
}
