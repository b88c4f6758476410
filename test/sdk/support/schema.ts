/**
 * The schema of the SDK suite, in the form that the SDK's own code generator writes: a constant from which
 * the types of all records follow.
 */
import { type BaseClientOptions, buildClient, type SchemaInference, type XataRecord } from "@xata.io/client";

export const TABLES = [
  {
    name: "teams",
    columns: [
      { name: "name", type: "string" },
      { name: "description", type: "text" },
      { name: "labels", type: "multiple" },
      { name: "index", type: "int" },
      { name: "rating", type: "float" },
      { name: "founded", type: "datetime" },
      { name: "email", type: "email", unique: true },
      { name: "plan", type: "string", notNull: true, defaultValue: "free" },
      { name: "dark", type: "bool" },
      { name: "config", type: "json" },
      { name: "owner", type: "link", link: { table: "users" } },
    ],
  },
  {
    name: "users",
    columns: [
      { name: "name", type: "string" },
      { name: "email", type: "email" },
      { name: "age", type: "int" },
      { name: "born", type: "datetime" },
      { name: "settings", type: "json" },
      { name: "team", type: "link", link: { table: "teams" } },
    ],
  },
  {
    name: "colours",
    columns: [
      { name: "name", type: "string" },
      { name: "family", type: "string" },
      { name: "lab", type: "vector", vector: { dimension: 3 } },
    ],
  },
  {
    name: "documents",
    columns: [
      { name: "title", type: "string" },
      { name: "embedding", type: "vector", vector: { dimension: 1536 } },
    ],
  },
] as const;

export type Types = SchemaInference<typeof TABLES>;
export type TeamsRecord = Types["teams"] & XataRecord;
export type UsersRecord = Types["users"] & XataRecord;
export type ColoursRecord = Types["colours"] & XataRecord;
export type DocumentsRecord = Types["documents"] & XataRecord;
export type DatabaseSchema = { teams: TeamsRecord; users: UsersRecord; colours: ColoursRecord; documents: DocumentsRecord };

const Client = buildClient();

export class XataClient extends Client<DatabaseSchema> {
  constructor(options: BaseClientOptions) {
    super(options, structuredClone(TABLES) as never);
  }
}
