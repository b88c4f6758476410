/**
 * The life of the embedded database: which session there is, and what happens when it ends. Nothing else opens
 * a session or replaces one.
 *
 *   opening ── opened ─────────> open ── it ended, renew ──> replacing ── failed ──> unopenable
 *      │                          ^                            │  ^                       │
 *      │ failed                   └────────── opened ──────────┘  └──── after a pause ────┘
 *      v
 *   closed <── its thread has exited ── closing <── work is done, or late ── finishing
 *
 *   opening, open, replacing, unopenable ── close ──> finishing: work that had been accepted may still run
 *   opening, open, replacing, unopenable ── lose ───> lost: another process has the directory ── close ──> closing
 *   finishing ── lose ──> closing
 *
 * - At most one session exists. The next one is begun only when the thread of the one before has exited.
 * - Whoever asks while one is being opened waits for that one.
 * - Only `opening`, `replacing` and `finishing` (when closed during an attempt) have an attempt under way. In the
 *   last it is not repeated.
 * - `lost`, `closing` and `closed` give nobody a session, and never open one again.
 * - `closed` means that no thread is left: then, and not before, the directory may be given to others.
 */

import { type FaultListeners, FaultState } from "../../../errors/fault-state.ts";
import { LodestoneError } from "../../../errors/lodestone-error.ts";

/** What this file needs of an EmbeddedSession; tests have others. */
export interface LivingSession {
  /** Why it has ended; null while it lives. */
  readonly failure: Error | null;
  /** Ends it at once. Resolves when its thread has exited. */
  kill(reason: Error): Promise<void>;
  /** Ends it in order. Resolves when its thread has exited. */
  close(): Promise<void>;
}

export interface SessionOpener<Session extends LivingSession> {
  /**
   * Opens a session that is ready for work. When `signal` aborts it is killed, then and later. Rejects only when
   * its thread has exited.
   *
   * @param onEnd  to be called when the session ends, whoever ended it.
   */
  open(signal: AbortSignal, onEnd: () => void): Promise<Session>;
  /** A session has taken the place of an earlier one. */
  onReplaced(): void;
}

export interface SessionLifeOptions extends FaultListeners {
  /** From this time on work no longer waits for a replacement, but is refused. */
  readonly replacePatienceMs?: number | undefined;
  /** Pause after the first attempt that fails; it doubles with each further one, eight times at most. */
  readonly reopenPauseMs?: number | undefined;
}

interface Attempt<Session> {
  /** The one whose place it takes: its thread ends first. */
  readonly before: Session | null;
  /** Rejects when the thread has exited. */
  readonly session: Promise<Session>;
  /** The same for those who wait: rejects with what they are told, also when a replacement takes too long. */
  readonly available: Promise<Session>;
  readonly controller: AbortController;
}

type State<Session> =
  | { readonly is: "opening"; readonly attempt: Attempt<Session> }
  | { readonly is: "open"; readonly session: Session }
  | { readonly is: "replacing"; readonly attempt: Attempt<Session>; readonly failures: number; readonly isLate: boolean }
  | { readonly is: "unopenable"; readonly error: LodestoneError; readonly timer: NodeJS.Timeout }
  | { readonly is: "lost"; readonly error: LodestoneError; readonly exited: Promise<void> }
  | { readonly is: "finishing"; readonly last: Session | Attempt<Session> | null; readonly closed: Promise<void> }
  | { readonly is: "closing"; readonly error: LodestoneError; readonly exited: Promise<void>; readonly closed: Promise<void> }
  | { readonly is: "closed"; readonly error: LodestoneError };

const PAUSE_MS = 1_000;
const LONGEST_PAUSE_FACTOR = 8;

const isAttempt = <Session extends LivingSession>(last: Session | Attempt<Session>): last is Attempt<Session> => "controller" in last;

export class SessionLife<Session extends LivingSession> {
  readonly #opener: SessionOpener<Session>;
  readonly #patienceMs: number;
  readonly #pauseMs: number;
  readonly #listeners: FaultListeners;
  readonly #fault: FaultState;
  #state: State<Session>;

  /** Begins to open the first session: `session` tells whether that succeeds. */
  constructor(opener: SessionOpener<Session>, options: SessionLifeOptions & { readonly replacePatienceMs: number }) {
    this.#opener = opener;
    this.#patienceMs = options.replacePatienceMs;
    this.#pauseMs = options.reopenPauseMs ?? PAUSE_MS;
    this.#listeners = options;
    this.#fault = new FaultState("The embedded database", options);
    this.#state = { is: "opening", attempt: this.#attempt(null, Promise.resolve()) };
  }

  get state(): State<Session>["is"] {
    return this.#state.is;
  }

  /** Why no new work is accepted; null while it is. */
  get refusal(): LodestoneError | null {
    const state = this.#state;
    if (state.is === "lost" || state.is === "closing" || state.is === "closed") return state.error;
    return state.is === "finishing" ? databaseClosed() : null;
  }

  /** Why there is no session for work; null while there is one, or will be in a moment. For operators. */
  get outage(): string | null {
    const state = this.#state;
    if (state.is === "lost") return state.error.message;
    const isOut = state.is === "unopenable" || (state.is === "replacing" && (state.isLate || state.failures > 0));
    return isOut ? "The database cannot be opened at the moment; the log says why." : null;
  }

  /** @throws {LodestoneError} UNAVAILABLE when there is none and will be none soon. */
  session(): Promise<Session> {
    const state = this.#state;
    switch (state.is) {
      case "open":
        return Promise.resolve(state.session);
      case "opening":
        return state.attempt.session;
      case "replacing":
        return state.attempt.available;
      case "finishing":
        return this.#lastSession(state.last);
      default:
        return Promise.reject(state.error);
    }
  }

  /** Replaces the session, whose user has nothing more for it to do, by a new one. */
  renew(): void {
    if (this.#state.is === "open") this.#replace(this.#state.session, this.#state.session.close());
  }

  /** The directory belongs to another process: nothing may be written any more. */
  lose(error: LodestoneError): void {
    const state = this.#state;
    switch (state.is) {
      case "closed":
      case "closing":
      case "lost":
        return;
      case "finishing":
        this.#state = { is: "closing", error, exited: this.#kill(state.last, error), closed: state.closed };
        break;
      case "unopenable":
        clearTimeout(state.timer);
        this.#state = { is: "lost", error, exited: Promise.resolve() };
        break;
      default:
        this.#state = { is: "lost", error, exited: this.#kill(state.is === "open" ? state.session : state.attempt, error) };
    }
    this.#listeners.onFault?.(error);
  }

  /**
   * @param finish  does the work that had been accepted; it gets no session after `limitMs`.
   * @returns when the last thread has exited.
   */
  close(finish: () => Promise<void>, limitMs: number): Promise<void> {
    const state = this.#state;
    if (state.is === "closed") return Promise.resolve();
    if (state.is === "finishing" || state.is === "closing") return state.closed;
    if (state.is === "unopenable") clearTimeout(state.timer);
    let resolve = (): void => {};
    const closed = new Promise<void>((done) => {
      resolve = done;
    });
    if (state.is === "lost") this.#state = { is: "closing", error: state.error, exited: state.exited, closed };
    else {
      const last = state.is === "open" ? state.session : state.is === "unopenable" ? null : state.attempt;
      this.#state = { is: "finishing", last, closed };
    }
    void this.#finish(finish, limitMs).then(resolve);
    return closed;
  }

  async #finish(finish: () => Promise<void>, limitMs: number): Promise<void> {
    const endLast = (end: (last: Session | Attempt<Session> | null) => Promise<void>): void => {
      const state = this.#state;
      if (state.is === "finishing") this.#state = { is: "closing", error: databaseClosed(), exited: end(state.last), closed: state.closed };
    };
    const kill = (last: Session | Attempt<Session> | null): Promise<void> => this.#kill(last, databaseClosed());
    const timer = setTimeout(() => endLast(kill), limitMs);
    await finish();
    clearTimeout(timer);
    // Nobody needs what is only being opened.
    endLast((last) => (last === null || isAttempt(last) ? kill(last) : last.close()));
    if (this.#state.is === "closing") await this.#state.exited;
    this.#state = { is: "closed", error: databaseClosed() };
  }

  async #kill(last: Session | Attempt<Session> | null, reason: Error): Promise<void> {
    await null; // the state first: the session's end must find it
    if (last === null) return;
    if (!isAttempt(last)) return last.kill(reason);
    last.controller.abort(reason);
    void last.before?.kill(reason);
    await last.session.then(
      (session) => session.kill(reason),
      () => {},
    );
  }

  async #lastSession(last: Session | Attempt<Session> | null): Promise<Session> {
    const session = last !== null && isAttempt(last) ? await last.available : last;
    if (session === null || session.failure !== null) throw databaseClosed();
    return session;
  }

  /** @param exited  resolves when the thread of the session before has exited. */
  #attempt(before: Session | null, exited: Promise<void>): Attempt<Session> {
    const controller = new AbortController();
    const { signal } = controller;
    const open = async (): Promise<Session> => {
      await exited;
      signal.throwIfAborted();
      return this.#opener.open(signal, () => this.#onEnd());
    };
    const session = open();
    const attempt: Attempt<Session> = { before, session, available: this.#available(session), controller };
    // This comes before anybody who waits: they find the new state.
    session.then(
      (opened) => this.#onOpened(attempt, opened),
      (error: unknown) => this.#onFailed(attempt, error),
    );
    return attempt;
  }

  #available(session: Promise<Session>): Promise<Session> {
    const available = new Promise<Session>((resolve, reject) => {
      const timer = setTimeout(() => {
        // Whoever opens the directory waits as long as that takes.
        if (this.#state.is !== "replacing" || this.#state.attempt.session !== session) return;
        this.#state = { ...this.#state, isLate: true };
        reject(unopenable("this takes longer than usual"));
      }, this.#patienceMs).unref();
      session.then(resolve, (error: unknown) => reject(unopenable(reasonOf(error), error))).finally(() => clearTimeout(timer));
    });
    available.catch(() => {});
    return available;
  }

  #onOpened(attempt: Attempt<Session>, session: Session): void {
    const state = this.#state;
    if (state.is === "finishing" && state.last === attempt) this.#state = { ...state, last: session };
    if ((state.is !== "opening" && state.is !== "replacing") || state.attempt !== attempt) return;
    this.#state = { is: "open", session };
    if (session.failure !== null) this.#onEnd();
    else this.#fault.works();
    if (state.is === "replacing") this.#opener.onReplaced();
  }

  #onFailed(attempt: Attempt<Session>, error: unknown): void {
    const state = this.#state;
    const told = unopenable(reasonOf(error), error);
    if (state.is === "finishing" && state.last === attempt) this.#state = { ...state, last: null };
    if (state.is === "opening" && state.attempt === attempt) this.#state = { is: "closed", error: told };
    if (state.is !== "replacing" || state.attempt !== attempt) return;
    this.#fault.failed(error);
    const failures = state.failures + 1;
    const pauseMs = this.#pauseMs * Math.min(LONGEST_PAUSE_FACTOR, 2 ** (failures - 1));
    const timer = setTimeout(() => this.#replace(null, Promise.resolve(), failures), pauseMs).unref();
    this.#state = { is: "unopenable", error: told, timer };
  }

  /** The session has ended, whoever ended it. In all states but two somebody waits for that. */
  #onEnd(): void {
    const state = this.#state;
    const session = state.is === "open" ? state.session : state.is === "finishing" && state.last !== null ? state.last : null;
    if (session === null || isAttempt(session) || session.failure === null) return;
    this.#fault.failed(session.failure.cause ?? session.failure);
    if (state.is === "open") this.#replace(session, session.kill(session.failure));
  }

  #replace(before: Session | null, exited: Promise<void>, failures = 0): void {
    this.#state = { is: "replacing", attempt: this.#attempt(before, exited), failures, isLate: false };
  }
}

const databaseClosed = (): LodestoneError => new LodestoneError("UNAVAILABLE", "The database is closed; nothing was changed.");

const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error)).replace(/\.$/, "");

const unopenable = (reason: string, cause?: unknown): LodestoneError =>
  new LodestoneError("UNAVAILABLE", `The database cannot be opened at the moment: ${reason}. Nothing was changed.`, {
    cause,
    retryAfterSeconds: 1,
  });
