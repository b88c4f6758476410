/**
 * Says what a line of SQL is in: nothing, or a text, a function's body, a quoted name or a comment that began
 * on an earlier line. So a line of a function's body that looks like a statement is not taken for one
 * (PostgreSQL documentation, "Lexical Structure").
 */
export class SqlScanner {
  /**
   * What ends the construct that the scanner is in: a quote, `$tag$`, or `*` for a comment of `depth`;
   * undefined: none.
   */
  #end: string | undefined;
  #escapes = false;
  #depth = 0;

  get isOutside(): boolean {
    return this.#end === undefined;
  }

  /** A line without its end. */
  feed(line: string): void {
    let at = 0;
    while (at < line.length) at = this.#end === undefined ? this.#outside(line, at) : this.#inside(line, at, this.#end);
  }

  #outside(line: string, at: number): number {
    const character = line[at] as string;
    if (character === "'" || character === '"') {
      this.#end = character;
      this.#escapes = character === "'" && /(?:^|[^\w$])[eE]$/.test(line.slice(Math.max(0, at - 2), at));
      return at + 1;
    }
    if (line.startsWith("--", at)) return line.length;
    if (line.startsWith("/*", at)) {
      this.#end = "*";
      this.#depth = 1;
      return at + 2;
    }
    if (character === "$" && !/[\w$]/.test(line[at - 1] ?? "")) {
      const tag = /^\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/.exec(line.slice(at, at + 66))?.[0];
      if (tag !== undefined) {
        this.#end = tag;
        return at + tag.length;
      }
    }
    return at + 1;
  }

  #inside(line: string, at: number, end: string): number {
    if (end === "*") {
      const opens = line.startsWith("/*", at);
      if (!opens && !line.startsWith("*/", at)) return at + 1;
      this.#depth += opens ? 1 : -1;
      if (this.#depth === 0) this.#end = undefined;
      return at + 2;
    }
    if (this.#escapes && line[at] === "\\") return at + 2;
    const found = this.#escapes ? (line.startsWith(end, at) ? at : -1) : line.indexOf(end, at);
    if (found === -1) return this.#escapes ? at + 1 : line.length;
    // A doubled quote is one within the text: it is left and entered again.
    this.#end = undefined;
    this.#escapes = this.#escapes && line[found + 1] === end;
    if (this.#escapes) {
      this.#end = end;
      return found + 2;
    }
    return found + end.length;
  }
}
