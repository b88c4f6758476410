/** The Model Context Protocol over streamable HTTP: an agent's tools, with the rights of the key that the request carries. */
import { isAllowed } from "../../key-scopes.ts";
import type { Api } from "../../mcp/api.ts";
import { refuseForeignOrigin } from "../cross-site-requests.ts";
import { type ApiRequest, type Endpoint, endpoint } from "../endpoint.ts";
import { answerError } from "../status.ts";
import type { JsonSchema } from "../validation.ts";
import type { Services } from "./services.ts";

/** What the protocol reads of a request's headers. The key is not among them. */
const HEADERS = ["accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name"];

/** With the SDK, which takes half a second and 22 MB: not before the first request. */
const loadMcp = () => import("../../mcp/mcp-server.ts");

const RPC_ERROR: JsonSchema = {
  type: "object",
  description: "An error of JSON-RPC 2.0.",
  properties: { jsonrpc: { const: "2.0" }, error: { type: "object" }, id: { type: ["string", "number", "null"] } },
  required: ["jsonrpc", "error"],
};

export function mcpEndpoints({ version, agentsWrite = false, corsOrigins = [] }: Services): Endpoint[] {
  return [
    endpoint<object>({
      method: "POST",
      path: "/mcp",
      name: "callMcp",
      summary: "The Model Context Protocol (streamable HTTP, without sessions): tools for agents",
      tag: "Agents",
      access: "read",
      body: { required: true, schema: { type: "object", description: "One JSON-RPC message." } },
      responses: {
        200: { description: "One JSON-RPC message, as JSON or as an event stream that ends with it." },
        202: { description: "A notification was received." },
        400: { description: "No message of the protocol, or of a revision that is not spoken. Nothing was changed.", schema: RPC_ERROR },
        404: { description: "The protocol, or this server, has no such method.", schema: RPC_ERROR },
        406: { description: "The client must accept JSON and event streams.", schema: RPC_ERROR },
      },
      async handle(request) {
        // The protocol asks for it, whether or not there are keys.
        refuseForeignOrigin(request.headers, corsOrigins);
        const { answerMcp } = await loadMcp();
        const writes = agentsWrite && request.caller !== undefined && isAllowed(request.caller.scope, "write");
        const unforeseen: unknown[] = [];
        const api = apiFor(request, (error) => unforeseen.push(error));
        const answer = await answerMcp(webRequest(request), request.body, api, { version, writes });
        const text = await answer.text();
        // The SDK would tell the agent what it says.
        if (unforeseen.length > 0) throw unforeseen[0];
        const contentType = answer.headers.get("content-type");
        return contentType === null ? { status: answer.status } : { status: answer.status, contentType, body: text };
      },
    }),
  ];
}

function webRequest({ headers, signal }: ApiRequest): Request {
  const passed = HEADERS.flatMap((name) => (typeof headers[name] === "string" ? [[name, headers[name]] as [string, string]] : []));
  // The address is not looked at.
  return new Request("http://localhost/mcp", { method: "POST", headers: passed, signal });
}

/** The API for the caller of this request, in this process. Its errors are answered as over HTTP. */
function apiFor(request: ApiRequest, onUnforeseen: (error: unknown) => void): Api {
  return async (method, target, body) => {
    try {
      const { status, body: answer } = await request.call(method, target, body);
      return { status, body: answer };
    } catch (error) {
      const { status, body: answer, unexpected } = answerError(error, request.requestId);
      if (unexpected) onUnforeseen(error);
      return { status, body: answer };
    }
  };
}
