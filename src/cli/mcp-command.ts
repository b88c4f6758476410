/** `lodestone mcp`: the Model Context Protocol on stdin and stdout, for agents that start their servers themselves. */
import { once } from "node:events";
import type { Command } from "commander";
import { LodestoneError } from "../errors/lodestone-error.ts";
import type { Api } from "../mcp/api.ts";
import { quoteInexactNumbers } from "../records/exact-json.ts";
import { ApiClient, ApiError } from "./api-client.ts";

interface McpFlags {
  url: string;
  apiKey?: string;
  write?: boolean;
}

/** @param version  of the program, which agents are told. */
export function mcpCommand(command: Command, version: string): Command {
  return command
    .description(
      "Give an agent the tools to search and read a running server: the Model Context Protocol on stdin and stdout. Agents start it themselves; docs/mcp.md has their settings.",
    )
    .option("--write", "tools that insert and delete records, too, where the key may")
    .action(async ({ url, apiKey, write = false }: McpFlags) => {
      // Nothing is tried again here: an insert is not safe to repeat, and the agent is told of whatever fails.
      const api = apiOf(new ApiClient({ url, ...(apiKey !== undefined && { apiKey }), patienceMs: 0 }));
      const { createMcpServer } = await import("../mcp/mcp-server.ts");
      const { serveStdio } = await import("@modelcontextprotocol/server/stdio");
      serveStdio(() => createMcpServer(api, { version, writes: write }), { maxSubscriptions: 0 });
      // The agent closes it when it ends.
      await once(process.stdin, "close");
    });
}

function apiOf(client: ApiClient): Api {
  return async (method, target, body) => {
    try {
      return { status: 200, body: JSON.parse(quoteInexactNumbers(await client.requestText(method, target, body))) };
    } catch (error) {
      if (error instanceof ApiError) return { status: error.status, body: { message: error.message, errors: error.errors } };
      if (error instanceof LodestoneError) return { status: 503, body: { message: error.message } };
      throw error;
    }
  };
}
