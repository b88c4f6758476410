import { endOfString } from "../text/json-scan.ts";

/**
 * JSON text that is answered as it is. Either JavaScript's numbers cannot represent it (1e999,
 * 12345678901234567890, 0.1000000000000000055), or it is long, and parsing it only to print it again would
 * block the event loop.
 */
export class ExactJson {
  readonly text: string;

  /** @param text  valid JSON. */
  constructor(text: string) {
    this.text = text;
  }

  /** JSON.stringify cannot give a text as it is: it gives the nearest numbers. */
  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

/** Parsed in a millisecond or two, whatever it holds. */
const LONG_TEXT = 64 * 1024;

/** From valid JSON: a value if it is short and every number in it survives; ExactJson otherwise. */
export function readJson(text: string): unknown {
  return text.length <= LONG_TEXT && holdsExactNumbers(text) ? JSON.parse(text) : new ExactJson(text);
}

/** Up to 15 digits without an exponent are exact in float64, and nearly all JSON has no others. */
const SUSPICIOUS = /[0-9.]{16}|[0-9][eE]/;

/** Whether every number in valid JSON survives JavaScript's numbers. Linear; a quick search for nearly every text. */
export function holdsExactNumbers(text: string): boolean {
  return inexactNumbers(text).next().done === true;
}

/** Valid JSON in which numbers that do not survive JavaScript's are texts with all of their digits. */
export function quoteInexactNumbers(text: string): string {
  let quoted = "";
  let done = 0;
  for (const [start, end] of inexactNumbers(text)) {
    quoted += `${text.slice(done, start)}"${text.slice(start, end)}"`;
    done = end;
  }
  return quoted + text.slice(done);
}

/** Where they begin, with their sign, and end. */
function* inexactNumbers(text: string): Generator<readonly [start: number, end: number], void, undefined> {
  if (!SUSPICIOUS.test(text)) return;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    else if (isDigit(code)) {
      const start = at;
      while (isNumberPart(text.charCodeAt(at + 1))) at++;
      if (!isExact(text.slice(start, at + 1))) yield [text.charCodeAt(start - 1) === 0x2d ? start - 1 : start, at + 1];
    }
  }
}

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39;
/** Of digits, sign, point and exponent, after the first digit. */
const isNumberPart = (code: number): boolean =>
  isDigit(code) || code === 0x2e || code === 0x65 || code === 0x45 || code === 0x2b || code === 0x2d;

/**
 * Whether float64's shortest text is the same number.
 * @param token  without a sign.
 */
function isExact(token: string): boolean {
  const number = Number(token);
  return Number.isFinite(number) && canonical(token) === canonical(String(number));
}

/** Digits without zeros around them, and the power of ten of the last one. */
function canonical(token: string): string {
  const [mantissa, exponent = "0"] = token.toLowerCase().split("e") as [string, string?];
  const [whole, fraction = ""] = mantissa.split(".") as [string, string?];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const kept = digits.replace(/0+$/, "");
  return kept === "" ? "0" : `${kept}e${BigInt(exponent) - BigInt(fraction.length) + BigInt(digits.length - kept.length)}`;
}
