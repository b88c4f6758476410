/**
 * Whole JSON objects and lists, compared as jsonb compares them: the order of members and white space do not
 * matter, and numbers are compared by value. A document is converted to one canonical text; two documents are
 * equal when their texts are.
 */

import { endOfString } from "../text/json-scan.ts";
import { checkText } from "./check-text.ts";
import { decimalKey } from "./decimal.ts";
import { fault, type Place } from "./fault.ts";
import { MAX_JSON_DOCUMENT_DEPTH } from "./filter-limits.ts";

/** An operand: a JSON object or list, in canonical text, which is JSON as well. */
export interface JsonDocument {
  readonly document: string;
}

/** A JSON number as PostgreSQL's numeric takes it in any case. */
const NUMBER = /^-?\d{1,400}(?:\.\d{1,400})?(?:[eE][+-]?\d{1,3})?$/;

/**
 * A text that is a JSON object or list, which is how the SDK sends what it compares a json column with;
 * undefined for every other text.
 * @throws {LodestoneError} INVALID where it holds what no stored value can.
 */
export function parseJsonDocument(text: string, place: Place): JsonDocument | undefined {
  if (!/^\s*[[{]/.test(text) || !isJson(text)) return undefined;
  const check = { text: (value: string) => checkText(value, place), number: (value: string) => checkNumber(value, place) };
  const document = canonicalJson(text, check);
  if (document === undefined) throw fault(place, `the JSON is nested more than ${MAX_JSON_DOCUMENT_DEPTH} deep`);
  return { document };
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function checkNumber(text: string, place: Place): void {
  if (!NUMBER.test(text)) throw fault(place, `the number ${text.slice(0, 40)} in the JSON is out of the range that can be compared`);
}

interface Check {
  text(value: string): void;
  number(value: string): void;
}

/** @param text  valid JSON. undefined when it is nested deeper than any operand can be. */
export function canonicalJson(text: string, check?: Check): string | undefined {
  let i = 0;

  const skipSpace = (): void => {
    while (text.charCodeAt(i) <= 0x20) i++;
  };
  const string = (): string => {
    const start = i;
    i = endOfString(text, start) + 1;
    const value = JSON.parse(text.slice(start, i)) as string;
    check?.text(value);
    return JSON.stringify(value);
  };
  const items = (close: string, item: () => void): void => {
    i++;
    skipSpace();
    while (text[i] !== close) {
      item();
      skipSpace();
      if (text[i] === ",") i++;
      skipSpace();
    }
    i++;
  };
  const value = (depth: number): string => {
    skipSpace();
    const first = text[i];
    if (first === '"') return string();
    if (first === "{" || first === "[") {
      if (depth === MAX_JSON_DOCUMENT_DEPTH) throw TOO_DEEP;
      return first === "[" ? list(depth) : object(depth);
    }
    const start = i;
    while (i < text.length && !",]} \t\n\r".includes(text[i]!)) i++;
    const word = text.slice(start, i);
    if (word === "true" || word === "false" || word === "null") return word;
    check?.number(word);
    return decimalKey(word);
  };
  const list = (depth: number): string => {
    const values: string[] = [];
    items("]", () => void values.push(value(depth + 1)));
    return `[${values.join(",")}]`;
  };
  const object = (depth: number): string => {
    // Of members with the same name the last counts, as in jsonb.
    const members = new Map<string, string>();
    items("}", () => {
      const name = string();
      skipSpace();
      i++;
      members.set(name, value(depth + 1));
    });
    const names = [...members.keys()].sort();
    return `{${names.map((name) => `${name}:${members.get(name)}`).join(",")}}`;
  };

  try {
    return value(0);
  } catch (error) {
    if (error === TOO_DEEP) return undefined;
    throw error;
  }
}

const TOO_DEEP = Symbol("too deep");
