/**
 * Calls to a worker of any kind: each has a number, and its reply carries the same number. Below every layer,
 * since several keep workers.
 */
import { type ErrorCode, LodestoneError } from "../errors/lodestone-error.ts";

interface Pending {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** Calls without a reply yet, in the order of the calls. */
export class PendingCalls {
  readonly #pending = new Map<number, Pending>();
  #last = 0;

  get size(): number {
    return this.#pending.size;
  }

  /** Numbers begin at 1. */
  begin<Result>(): { readonly number: number; readonly answer: Promise<Result> } {
    const number = ++this.#last;
    const answer = new Promise<unknown>((resolve, reject) => this.#pending.set(number, { resolve, reject })) as Promise<Result>;
    return { number, answer };
  }

  /** Like `reject`, does nothing for a call that was given up. */
  resolve(number: number, result: unknown): void {
    this.#take(number)?.resolve(result);
  }

  reject(number: number, error: unknown): void {
    this.#take(number)?.reject(error);
  }

  rejectAll(error: Error): void {
    const all = [...this.#pending.values()];
    this.#pending.clear();
    for (const { reject } of all) reject(error);
  }

  #take(number: number): Pending | undefined {
    const pending = this.#pending.get(number);
    this.#pending.delete(number);
    return pending;
  }
}

/** An error as a reply carries it: structured clone would lose the class and the code. */
export interface ErrorReply {
  readonly name: string;
  readonly message: string;
  readonly code?: ErrorCode;
}

export function describeError(error: unknown): ErrorReply {
  if (error instanceof LodestoneError) return { name: error.name, message: error.message, code: error.code };
  return error instanceof Error ? { name: error.name, message: error.message } : { name: "Error", message: String(error) };
}

export function rebuildError({ name, message, code }: ErrorReply): Error {
  if (code !== undefined) return new LodestoneError(code, message);
  return name === "TypeError" ? new TypeError(message) : name === "RangeError" ? new RangeError(message) : new Error(message);
}
