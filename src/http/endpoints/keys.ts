/** API keys, for administrators: what `lodestone keys` does, while the server runs. */
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { SCOPES, type Scope } from "../../key-scopes.ts";
import { type Endpoint, endpoint } from "../endpoint.ts";
import type { Caller } from "../keys/access-keys.ts";
import { MAX_KEY_DATABASES } from "../keys/key-file.ts";
import { NAME, objectOf } from "../schemas.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

const DATABASES: JsonSchema = { type: ["array", "null"], items: { type: "string" }, description: "null: all." };
const ENTRY: Readonly<Record<string, JsonSchema>> = {
  name: { type: "string" },
  scope: { enum: SCOPES },
  databases: DATABASES,
};

interface CreateKeyBody {
  readonly name: string;
  readonly scope: Scope;
  readonly databases?: readonly string[];
}

export function keyEndpoints({ keys }: Services): Endpoint[] {
  const tag = "Operation";
  const path = "/keys";
  const managerFor = (caller: Caller | undefined) => {
    if (caller?.databases !== undefined)
      throw new LodestoneError("FORBIDDEN", "Only a key for all databases may see keys; this one is limited to some.");
    if (keys === undefined) throw new LodestoneError("INVALID", "This server requires no keys; start it with --key-file to use keys.");
    return keys;
  };
  return [
    endpoint({
      method: "GET",
      path,
      name: "listKeys",
      summary: "The names and scopes of the API keys, never the keys",
      tag,
      access: "admin",
      responses: {
        200: {
          description: "The keys of the command line, then those of the key file.",
          schema: {
            type: "object",
            properties: {
              keys: {
                type: "array",
                items: {
                  type: "object",
                  properties: { ...ENTRY, createdAt: { type: ["string", "null"], description: "null: given on the command line." } },
                  required: ["name", "scope", "databases", "createdAt"],
                },
              },
              hasFile: {
                type: "boolean",
                description: "Whether keys can be created and revoked: true if the server was started with --key-file.",
              },
            },
            required: ["keys", "hasFile"],
          },
        },
      },
      async handle({ caller }) {
        const manager = managerFor(caller);
        return { status: 200, body: { keys: await manager.list(), hasFile: manager.hasFile } };
      },
    }),
    endpoint<CreateKeyBody>({
      method: "POST",
      path,
      name: "createKey",
      summary: "Create a key; it is shown only in this answer",
      tag,
      access: "admin",
      body: {
        required: true,
        schema: objectOf(
          {
            name: { ...NAME, description: "Identifies the key in logs and lists." },
            scope: { enum: SCOPES, description: "Each scope includes those before it." },
            databases: {
              type: "array",
              items: NAME,
              minItems: 1,
              maxItems: MAX_KEY_DATABASES,
              description: "The databases that it is limited to. Default: all.",
            },
          },
          ["name", "scope"],
        ),
      },
      responses: {
        201: {
          description: "The key. The server keeps only its hash.",
          schema: { type: "object", properties: { ...ENTRY, key: { type: "string" } }, required: ["name", "scope", "databases", "key"] },
        },
        422: { description: "A key of this name exists, or there are as many keys as there can be." },
      },
      async handle({ caller, body: { name, scope, databases } }) {
        const key = await managerFor(caller).create(name, scope, databases);
        return { status: 201, body: { name, scope, databases: databases ?? null, key } };
      },
    }),
    endpoint({
      method: "DELETE",
      path: `${path}/{key}`,
      name: "revokeKey",
      summary: "Revoke a key",
      tag,
      access: "admin",
      responses: {
        204: { description: "The key is refused from now on." },
        422: { description: "It is the key that was used for this request." },
      },
      async handle({ caller, path: { key } }) {
        await managerFor(caller).revoke(key as string, caller?.name ?? "");
        return { status: 204 };
      },
    }),
  ];
}
