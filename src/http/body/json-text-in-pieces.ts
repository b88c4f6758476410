/** A long JSON string, decoded and checked piece by piece: in one go a text of 20 MB takes a fifteenth of a second. */
import { isHighSurrogate } from "../../text/surrogates.ts";
import { type Fault, findTextFault } from "./json-body.ts";

const BACKSLASH = 0x5c;
const LETTER_U = 0x75;
/** `\u0436`, the longest escape. */
const ESCAPE_LENGTH = 6;

export class JsonTextInPieces {
  readonly #text: string;
  readonly #end: number;
  readonly #pieceLength: number;
  readonly #pieces: string[] = [];
  /** Never inside an escape. */
  #at: number;
  /** The first half of a surrogate pair with which the last piece ended: it belongs to the next. */
  #half = "";
  /** What PostgreSQL could not hold, as soon as it is found. */
  fault: Fault | undefined;
  /** Once everything is decoded and has no fault. */
  value: string | undefined;

  /**
   * @param begin  just behind the opening quote.
   * @param end  of the closing quote.
   */
  constructor(text: string, begin: number, end: number, pieceLength: number) {
    this.#text = text;
    this.#at = begin;
    this.#end = end;
    this.#pieceLength = pieceLength;
  }

  /** Decodes the next piece; puts them together after the last. @throws {SyntaxError} */
  step(): void {
    if (this.#at < this.#end) {
      const end = this.#endOfPiece();
      const piece = this.#half + (JSON.parse(`"${this.#text.slice(this.#at, end)}"`) as string);
      this.#at = end;
      this.#half = end < this.#end && isHighSurrogate(piece.charCodeAt(piece.length - 1)) ? piece.slice(-1) : "";
      const whole = this.#half === "" ? piece : piece.slice(0, -1);
      this.fault = findTextFault(whole);
      this.#pieces.push(whole);
    } else this.value = this.#pieces.join("");
  }

  /** Behind the escape, if the piece would end within one. */
  #endOfPiece(): number {
    const text = this.#text;
    const end = Math.min(this.#at + this.#pieceLength, this.#end);
    for (let at = end - 1; at >= this.#at && at > end - ESCAPE_LENGTH; at--) {
      if (text.charCodeAt(at) !== BACKSLASH) continue;
      let backslashes = 1;
      while (at - backslashes >= this.#at && text.charCodeAt(at - backslashes) === BACKSLASH) backslashes++;
      if (backslashes % 2 === 0) return end;
      const length = text.charCodeAt(at + 1) === LETTER_U ? ESCAPE_LENGTH : 2;
      return Math.min(Math.max(end, at + length), this.#end);
    }
    return end;
  }
}
