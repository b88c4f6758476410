/**
 * The Model Context Protocol: the tools, as the protocol's own SDK serves them. It speaks both generations of the protocol
 * (2026-07-28 and those of 2025), keeps no sessions, and a server object lives as long as one request or one stdio connection.
 */
import { createMcpHandler, fromJsonSchema, McpServer, type StandardSchemaWithJSON } from "@modelcontextprotocol/server";
import { answerText } from "./answer-text.ts";
import type { Api, ApiAnswer } from "./api.ts";
import { READ_TOOLS, type Tool, type ToolArguments, WRITE_TOOLS } from "./tools.ts";

export interface McpOptions {
  readonly version: string;
  /** Whether there are tools that insert and delete. */
  readonly writes: boolean;
}

const INSTRUCTIONS =
  "Lodestone holds records with words and vectors. Call list_databases, then describe_tables, then search, vector_search, query_records " +
  "or run_sql. Answers are cut to fit, and then say how to ask for the rest.";

/** What to do about an error of this status, besides what its message says. */
const REMEDIES: Readonly<Record<number, string>> = {
  400: "Nothing was changed. describe_tables gives the columns and their types.",
  401: "The MCP client must send an API key of this server.",
  404: "list_databases and describe_tables give the names that exist.",
  413: "Ask for fewer columns, a smaller size, or a narrower filter.",
  429: "Try again in some seconds.",
  503: "Try again in some seconds.",
  504: "Ask for less: a narrower filter, or a LIMIT.",
};

/** Compiled once: a server object is made for each request. */
const schemas = new Map<Tool, StandardSchemaWithJSON<ToolArguments, ToolArguments>>();

export function createMcpServer(api: Api, { version, writes }: McpOptions): McpServer {
  const server = new McpServer(
    { name: "lodestone", title: "Lodestone", version },
    { capabilities: { tools: { listChanged: false } }, instructions: INSTRUCTIONS },
  );
  for (const tool of writes ? [...READ_TOOLS, ...WRITE_TOOLS] : READ_TOOLS) {
    const { name, description, annotations } = tool;
    server.registerTool(name, { description, annotations, inputSchema: schemaOf(tool) }, async (asked) => {
      const answer = await tool.run(api, asked);
      const isError = answer.status >= 400;
      return { content: [{ type: "text", text: isError ? errorText(answer) : answerText(answer.body) }], isError };
    });
  }
  return server;
}

/** Answers one request of the streamable HTTP transport. @param message  its body. @returns what ends at once: there are no streams. */
export async function answerMcp(request: Request, message: unknown, api: Api, options: McpOptions): Promise<Response> {
  // Nothing changes that could be subscribed to: a request for it is refused.
  const handler = createMcpHandler(() => createMcpServer(api, options), { maxSubscriptions: 0, keepAliveMs: 0 });
  return handler.fetch(request, { parsedBody: message });
}

function schemaOf(tool: Tool): StandardSchemaWithJSON<ToolArguments, ToolArguments> {
  const known = schemas.get(tool);
  if (known !== undefined) return known;
  const { properties, required } = tool.input;
  const schema = fromJsonSchema<ToolArguments>({
    type: "object",
    properties: { ...properties },
    required: [...required],
    additionalProperties: false,
  });
  schemas.set(tool, schema);
  return schema;
}

function errorText({ status, body }: ApiAnswer): string {
  const { message, errors = [] } = body as { message?: string; errors?: readonly { index: number; message: string }[] };
  const said = errors.length > 0 ? errors.map((error) => `[${error.index}] ${error.message}`).join("\n") : (message ?? `Status ${status}.`);
  return [said.slice(0, 2_000).toWellFormed(), REMEDIES[status]].filter((line) => line !== undefined).join("\n");
}
