/** A request as its path, and as a command to paste. */
import type { Operation } from "./api-description.ts";

/** @param values of path and query parameters by name; a query parameter without one is left out. */
export function pathOf({ path, parameters = [] }: Operation, values: Readonly<Record<string, string>>): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const query = parameters
    .filter((parameter) => parameter.in === "query" && (values[parameter.name] ?? "") !== "")
    .map(({ name }) => `${name}=${encodeURIComponent(values[name] as string)}`);
  return query.length === 0 ? filled : `${filled}?${query.join("&")}`;
}

/** The key itself is never part of it. */
export function curlOf(method: string, url: string, body: string, asksForKey: boolean): string {
  const lines = [`curl -s ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`];
  if (asksForKey) lines.push(`-H 'Authorization: Bearer <key>'`);
  if (body.trim() !== "") lines.push("-H 'Content-Type: application/json'", `-d ${quoted(body.trim())}`);
  return lines.join(" \\\n  ");
}

/** For a POSIX shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Indents JSON without parsing it: parsed and written again, long numbers would lose digits. */
export function indented(json: string): string {
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
