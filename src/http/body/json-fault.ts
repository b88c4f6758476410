/**
 * Says where and why a text is no JSON (RFC 8259), in words that do not depend on the JavaScript engine. Runs only after JSON.parse has refused the text.
 * A small pushdown automaton: the stack holds the open brackets, so depth costs memory, never the call stack.
 */

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const WORD = /true|false|null/y;
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y;

/** For example: `expected a value at line 1, column 9 (offset 8), got "}"`. */
export function findJsonFault(text: string): string {
  const scan = new Scanner(text);
  const open: ("{" | "[")[] = [];
  for (;;) {
    // A value is expected here.
    scan.skipSpace();
    if (scan.take("{")) {
      scan.skipSpace();
      if (!scan.take("}")) {
        open.push("{");
        if (!scan.key()) return scan.fault();
        continue;
      }
    } else if (scan.take("[")) {
      scan.skipSpace();
      if (!scan.take("]")) {
        open.push("[");
        continue;
      }
    } else if (!scan.scalar()) {
      return scan.fault();
    }
    // A value has ended: close what closes, and go on behind a comma.
    for (;;) {
      scan.skipSpace();
      const bracket = open.at(-1);
      if (bracket === undefined) return scan.expect("the end of the body").fault();
      if (scan.take(",")) {
        if (bracket === "{" && !scan.key()) return scan.fault();
        break;
      }
      if (!scan.take(bracket === "{" ? "}" : "]")) return scan.expect(bracket === "{" ? '"," or "}"' : '"," or "]"').fault();
      open.pop();
    }
  }
}

class Scanner {
  readonly #text: string;
  #at = 0;
  #expected = "a value";

  constructor(text: string) {
    this.#text = text;
  }

  expect(what: string): this {
    this.#expected = what;
    return this;
  }

  take(character: string): boolean {
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  skipSpace(): void {
    for (;;) {
      const code = this.#text.charCodeAt(this.#at);
      if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return;
      this.#at++;
    }
  }

  scalar(): boolean {
    if (this.#text[this.#at] === '"') return this.#string();
    this.expect("a value");
    return this.#match(NUMBER) || this.#match(WORD);
  }

  /** A key and its colon. */
  key(): boolean {
    this.skipSpace();
    this.expect("a key in double quotes");
    if (this.#text[this.#at] !== '"' || !this.#string()) return false;
    this.skipSpace();
    return this.expect('":" behind the key').take(":");
  }

  #string(): boolean {
    const { length } = this.#text;
    this.#at++;
    while (this.#at < length) {
      const code = this.#text.charCodeAt(this.#at);
      if (code === 0x22) {
        this.#at++;
        return true;
      }
      if (code < 0x20) {
        this.expect("an escape such as \\n instead of a bare control character in a string");
        return false;
      }
      if (code !== 0x5c) this.#at++;
      else if (!this.#match(ESCAPE)) {
        this.expect('one of the escapes \\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX');
        return false;
      }
    }
    this.expect("the end of the string");
    return false;
  }

  #match(pattern: RegExp): boolean {
    pattern.lastIndex = this.#at;
    if (!pattern.test(this.#text)) return false;
    this.#at = pattern.lastIndex;
    return true;
  }

  fault(): string {
    const at = this.#at;
    const before = this.#text.slice(0, at);
    const line = before.split("\n").length;
    const column = at - before.lastIndexOf("\n");
    const got = at >= this.#text.length ? "the end" : JSON.stringify(String.fromCodePoint(this.#text.codePointAt(at) as number));
    return `expected ${this.#expected} at line ${line}, column ${column} (offset ${at}), got ${got}`;
  }
}
