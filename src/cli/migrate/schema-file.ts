/**
 * The schema of a classic database: the JSON that the retired service's command line dumps, or the file that
 * its code generator wrote (`xata.ts`), of which the constant `tables` is read. That is a literal of
 * JavaScript: it is parsed as data, and never run.
 */
import { isUtf8 } from "node:buffer";
import { readFile, stat } from "node:fs/promises";
import { LodestoneError } from "../../errors/lodestone-error.ts";
import { isUnderscored } from "../../filter/system-columns.ts";
import { TYPES_NOT_OFFERED } from "../../records/catalog/column-types.ts";
import type { ColumnSchema } from "../../records/schema.ts";

export interface SchemaFile {
  readonly tables: readonly { readonly name: string; readonly columns: readonly ColumnSchema[] }[];
  readonly skipped: ReadonlyMap<string, readonly string[]>;
  readonly leftOut: readonly string[];
  readonly isUnderscored: boolean;
}

const MAX_BYTES = 16 << 20;

export async function readSchemaFile(path: string): Promise<SchemaFile> {
  if ((await stat(path)).size > MAX_BYTES) throw new LodestoneError("INVALID", `${path} is too large for a schema.`);
  const bytes = await readFile(path);
  if (!isUtf8(bytes)) throw new LodestoneError("INVALID", `${path} is not UTF-8; save it in this encoding.`);
  const text = bytes.toString("utf8").replace(/^\uFEFF/, "");
  const given = path.endsWith(".json") ? parseJson(text, path) : literalTables(text, path);
  const list = Array.isArray(given)
    ? given
    : ((given as { tables?: unknown; schema?: { tables?: unknown } })?.tables ??
      (given as { schema?: { tables?: unknown } })?.schema?.tables);
  if (!Array.isArray(list)) throw new LodestoneError("INVALID", `${path} has no list of tables.`);
  const leftOut: string[] = [];
  const skipped = new Map<string, string[]>();
  let underscored = false;
  const tables = list.map((table: { name?: unknown; columns?: unknown }) => {
    const { name, columns } = table;
    if (typeof name !== "string" || !Array.isArray(columns))
      throw new LodestoneError("INVALID", `${path}: a table needs a name and columns.`);
    const kept = (columns as (ColumnSchema & { type: string })[]).filter((column) => {
      if (isUnderscored(column.name)) {
        underscored = true;
        return false;
      }
      if (!Object.hasOwn(TYPES_NOT_OFFERED, column.type)) return true;
      skipped.set(name, [...(skipped.get(name) ?? []), column.name]);
      leftOut.push(`${name}.${column.name}: ${TYPES_NOT_OFFERED[column.type]}`);
      return false;
    });
    return { name, columns: kept };
  });
  return { tables, skipped, leftOut, isUnderscored: underscored };
}

function parseJson(text: string, path: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new LodestoneError("INVALID", `${path} is not JSON: ${(error as Error).message}`);
  }
}

/** `const tables = [ … ] as const;` */
function literalTables(text: string, path: string): unknown {
  const start = /\btables\b[^=;]*=\s*(?=\[)/.exec(text);
  if (start === null) throw new LodestoneError("INVALID", `${path} has no constant "tables" with a list of tables.`);
  return new LiteralParser(text, start.index + start[0].length, path).value();
}

/**
 * Objects, lists, texts, numbers, true, false and null, with comments and trailing commas, as code generators
 * and formatters write them.
 */
class LiteralParser {
  readonly #text: string;
  readonly #path: string;
  #at: number;

  constructor(text: string, at: number, path: string) {
    this.#text = text;
    this.#at = at;
    this.#path = path;
  }

  value(): unknown {
    this.#space();
    const character = this.#text[this.#at];
    if (character === "[") return this.#list("]", () => this.value());
    if (character === "{") return Object.fromEntries(this.#list("}", () => this.#member()));
    if (character === '"' || character === "'" || character === "`") return this.#string(character);
    const word = /[-+\w.]+/y;
    word.lastIndex = this.#at;
    const found = word.exec(this.#text)?.[0];
    const constants = new Map<string | undefined, unknown>([
      ["true", true],
      ["false", false],
      ["null", null],
      ["undefined", undefined],
    ]);
    if (found === undefined || (!constants.has(found) && Number.isNaN(Number(found)))) throw this.#unexpected();
    this.#at += found.length;
    return constants.has(found) ? constants.get(found) : Number(found);
  }

  #member(): [string, unknown] {
    this.#space();
    const quote = this.#text[this.#at];
    let key: string;
    if (quote === '"' || quote === "'") key = this.#string(quote);
    else {
      const name = /[\w$]+/y;
      name.lastIndex = this.#at;
      const found = name.exec(this.#text)?.[0];
      if (found === undefined) throw this.#unexpected();
      this.#at += found.length;
      key = found;
    }
    this.#space();
    if (this.#text[this.#at] !== ":") throw this.#unexpected();
    this.#at++;
    return [key, this.value()];
  }

  #list<Item>(end: string, item: () => Item): Item[] {
    const items: Item[] = [];
    this.#at++;
    for (;;) {
      this.#space();
      if (this.#text[this.#at] === end) {
        this.#at++;
        return items;
      }
      items.push(item());
      this.#space();
      if (this.#text[this.#at] === ",") this.#at++;
      else if (this.#text[this.#at] !== end) throw this.#unexpected();
    }
  }

  #string(quote: string): string {
    const escapes: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", b: "\b", f: "\f", v: "\v", "0": "\0", "\n": "" };
    let value = "";
    for (this.#at++; this.#text[this.#at] !== quote; this.#at++) {
      const character = this.#text[this.#at];
      if (character === undefined || (quote === "`" && this.#text.startsWith("${", this.#at))) throw this.#unexpected();
      if (character !== "\\") {
        value += character;
        continue;
      }
      const escaped = this.#text[++this.#at] ?? "";
      const code = escaped === "u" ? /^[0-9a-fA-F]{4}/.exec(this.#text.slice(this.#at + 1))?.[0] : undefined;
      if (code !== undefined) this.#at += 4;
      value += code === undefined ? (escapes[escaped] ?? escaped) : String.fromCharCode(Number.parseInt(code, 16));
    }
    this.#at++;
    return value;
  }

  #space(): void {
    const space = /(?:\s|\/\/[^\n]*|\/\*[\s\S]*?\*\/)*/y;
    space.lastIndex = this.#at;
    this.#at += space.exec(this.#text)?.[0].length ?? 0;
  }

  #unexpected(): LodestoneError {
    const line = this.#text.slice(0, this.#at).split("\n").length;
    return new LodestoneError(
      "INVALID",
      `${this.#path}, line ${line}: expected a literal (a list, an object, a text or a number) here: ${JSON.stringify(this.#text.slice(this.#at, this.#at + 40))}`,
    );
  }
}
