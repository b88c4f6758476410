/**
 * The state machine of the embedded database's session, with sessions that open, die and exit when the test says:
 * whatever happens in whatever order, there is one thread at most, and nothing is left when it is closed.
 */
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { LodestoneError } from "../../../src/errors/lodestone-error.ts";
import { type LivingSession, SessionLife } from "../../../src/records/engine/embedded/session-life.ts";

const PAUSE_MS = 1_000;
const PATIENCE_MS = 10_000;
const LIMIT_MS = 500;

/** A session's thread. It begins when its opening is asked for and stays until it is let go. */
class FakeThread implements LivingSession {
  failure: Error | null = null;
  isAlive = true;
  /** Told to end: it exits when the test lets it. */
  isEnding = false;
  isOpened = false;
  readonly #world: World;
  readonly #onEnd: () => void;
  #exited = (): void => {};
  readonly exited = new Promise<void>((resolve) => {
    this.#exited = resolve;
  });
  #settle: { resolve: (session: FakeThread) => void; reject: (error: unknown) => void } | null = null;
  readonly opening = new Promise<FakeThread>((resolve, reject) => {
    this.#settle = { resolve, reject };
  });

  constructor(world: World, signal: AbortSignal, onEnd: () => void) {
    this.#world = world;
    this.#onEnd = onEnd;
    signal.addEventListener("abort", () => void this.kill(signal.reason as Error), { once: true });
  }

  open(): void {
    this.isOpened = true;
    this.#settle!.resolve(this);
  }

  /** As a database that stops by itself. */
  die(reason: Error): void {
    if (this.failure !== null) return;
    this.failure = reason;
    this.isEnding = true;
    this.#onEnd();
  }

  kill(reason: Error): Promise<void> {
    this.die(reason);
    return this.exited;
  }

  close(): Promise<void> {
    this.failure ??= new Error("closed");
    this.isEnding = true;
    return this.exited;
  }

  exit(): void {
    this.isAlive = false;
    this.#world.threads.delete(this);
    this.#exited();
    if (!this.isOpened) this.#settle!.reject(this.failure ?? new Error("it did not start"));
  }
}

class World {
  readonly threads = new Set<FakeThread>();
  readonly wrong: string[] = [];
  readonly faults: string[] = [];
  readonly recoveries: string[] = [];
  opened = 0;
  replaced = 0;
  readonly life: SessionLife<FakeThread> = new SessionLife<FakeThread>(
    {
      open: (signal, onEnd) => {
        if (this.threads.size > 0) this.wrong.push("a session was opened while a thread was alive");
        if (this.opened > 0 && ["lost", "closing", "closed"].includes(this.life.state)) this.wrong.push(`opened when ${this.life.state}`);
        this.opened++;
        const thread = new FakeThread(this, signal, onEnd);
        this.threads.add(thread);
        return thread.opening;
      },
      onReplaced: () => {
        this.replaced++;
      },
    },
    {
      reopenPauseMs: PAUSE_MS,
      replacePatienceMs: PATIENCE_MS,
      onFault: (error) => this.faults.push((error as Error).message),
      onRecovery: (sentence) => this.recoveries.push(sentence),
    },
  );

  get thread(): FakeThread {
    return [...this.threads][0]!;
  }
}

const passes = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const LOST = new LodestoneError("UNAVAILABLE", "Another process took over.");

/** What may follow each state; a state may always stay. */
const NEXT: Readonly<Record<string, readonly string[]>> = {
  opening: ["open", "replacing", "closed", "finishing", "lost", "closing"],
  open: ["replacing", "finishing", "lost", "closing", "closed"],
  replacing: ["open", "unopenable", "finishing", "lost", "closing", "closed"],
  unopenable: ["replacing", "finishing", "lost", "closing", "closed"],
  lost: ["closing", "closed"],
  finishing: ["closing", "closed"],
  closing: ["closed"],
  closed: [],
};

type Step = (world: World, asked: Promise<unknown>[], work: { isDone: boolean; finish: () => void }) => unknown;

const STEPS: Readonly<Record<string, Step>> = {
  "the database opens": ({ threads }) => [...threads].find((thread) => !thread.isOpened && !thread.isEnding)?.open(),
  "it dies": ({ threads }) => [...threads].find((thread) => thread.isOpened)?.die(new Error("PANIC")),
  "it dies while it opens": ({ threads }) => [...threads].find((thread) => !thread.isOpened)?.die(new Error("PANIC at start")),
  "it opens and dies at once": ({ threads }) => {
    const thread = [...threads].find((candidate) => !candidate.isOpened && !candidate.isEnding);
    thread?.open();
    thread?.die(new Error("PANIC at once"));
  },
  "its thread exits": ({ threads }) => [...threads].find((thread) => thread.isEnding)?.exit(),
  "its thread exits by itself": ({ threads }) => {
    for (const thread of threads) {
      thread.die(new Error("the thread ended"));
      thread.exit();
    }
  },
  "it is renewed": ({ life }) => life.renew(),
  "the lock is lost": ({ life }) => life.lose(LOST),
  "work asks": ({ life }, asked) => asked.push(life.session().catch((error: Error) => error)),
  "it is closed": ({ life }, asked, work) =>
    asked.push(
      life.close(
        () =>
          work.isDone
            ? Promise.resolve()
            : new Promise((resolve) => {
                work.finish = resolve;
              }),
        LIMIT_MS,
      ),
    ),
  "work is done": (_world, _asked, work) => {
    work.isDone = true;
    work.finish();
  },
  "half a second passes": () => passes(LIMIT_MS),
  "a minute passes": () => passes(60_000),
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe("the life of the embedded database's session", () => {
  it("has one thread at most, and none when it is closed, whatever happens in whatever order", async () => {
    const seen = new Set<string>();
    await fc.assert(
      fc.asyncProperty(fc.array(fc.constantFrom(...Object.keys(STEPS)), { maxLength: 40 }), async (names) => {
        const world = new World();
        const asked: Promise<unknown>[] = [];
        const work = { isDone: false, finish: () => {} };
        let before = world.life.state as string;
        const check = (step: string): void => {
          const { state } = world.life;
          seen.add(state);
          expect(state === before || NEXT[before]!.includes(state), `${before} → ${state} when ${step}`).toBe(true);
          before = state;
          expect(world.wrong).toEqual([]);
          if (state === "closed") expect(world.threads.size).toBe(0);
          if (state === "open") expect([world.threads.size, world.thread.failure]).toEqual([1, null]);
          if (["lost", "finishing", "closing", "closed"].includes(state)) expect(world.life.refusal).not.toBeNull();
        };
        await passes();
        for (const name of names) {
          await STEPS[name]!(world, asked, work);
          await passes();
          check(name);
        }
        // All threads exit when they are told to, and all work ends: then everything that was asked is answered.
        work.isDone = true;
        work.finish();
        const closed = world.life.close(() => Promise.resolve(), LIMIT_MS);
        for (let turn = 0; turn < 4; turn++) {
          await passes(LIMIT_MS);
          for (const thread of [...world.threads]) if (thread.isEnding) thread.exit();
        }
        await closed;
        check("the end");
        expect(world.life.state).toBe("closed");
        await Promise.all(asked);
        await expect(world.life.session()).rejects.toMatchObject({ code: "UNAVAILABLE" });
        await passes(60_000);
        expect(world.threads.size).toBe(0);
      }),
      { numRuns: 1_000 },
    );
    expect([...seen].sort()).toEqual(Object.keys(NEXT).sort());
  });

  /** Open, as after a start. */
  async function open(): Promise<World> {
    const world = new World();
    await passes();
    world.thread.open();
    await passes();
    expect(world.life.state).toBe("open");
    return world;
  }

  it("gives the same session to all who ask while it is opened", async () => {
    const world = new World();
    const asked = [world.life.session(), world.life.session()];
    await passes(10 * PATIENCE_MS);
    expect(world.opened).toBe(1);
    world.thread.open();
    const [first, second] = await Promise.all(asked);
    expect(first).toBe(second);
  });

  it("waits, before it opens the next session, until the thread of the dead one has exited, and says both once", async () => {
    const world = await open();
    const { thread } = world;
    thread.die(new LodestoneError("UNAVAILABLE", "restarted", { cause: new Error("PANIC: no space") }));
    const next = world.life.session();
    await passes(PATIENCE_MS - 1);
    expect([world.life.state, world.opened, world.life.outage]).toEqual(["replacing", 1, null]);
    await passes(1);
    await expect(next).rejects.toMatchObject({ code: "UNAVAILABLE", message: expect.stringContaining("longer than usual") });
    expect(world.life.outage).not.toBeNull();
    thread.exit();
    await passes();
    expect(world.opened).toBe(2);
    world.thread.open();
    await passes();
    expect(await world.life.session()).toBe(world.thread);
    expect([world.faults, world.recoveries, world.replaced]).toEqual([
      ["The embedded database fails: PANIC: no space"],
      ["The embedded database works again."],
      1,
    ]);
  });

  it("tries again by itself, ever more rarely, says the reason once, and refuses at once meanwhile", async () => {
    const world = await open();
    world.thread.die(new Error("died"));
    world.thread.exit();
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 8_000]) {
      await passes();
      const { opened } = world;
      world.thread.die(new Error("no room"));
      world.thread.exit();
      await passes();
      expect(world.life.state).toBe("unopenable");
      await expect(world.life.session()).rejects.toMatchObject({ message: expect.stringContaining("no room") });
      await passes(pauseMs - 1);
      expect(world.opened).toBe(opened);
      await passes(1);
      expect(world.opened).toBe(opened + 1);
    }
    world.thread.open();
    await passes();
    expect(world.life.outage).toBeNull();
    expect(world.faults).toEqual(["The embedded database fails: died", "The embedded database fails: no room"]);
    expect(world.recoveries).toHaveLength(1);
  });

  it("whose first session cannot be opened is closed, with that error", async () => {
    const world = new World();
    await passes();
    const asked = world.life.session();
    const refused = expect(asked).rejects.toThrow("could not locate a valid checkpoint record");
    world.thread.die(new Error("could not locate a valid checkpoint record"));
    world.thread.exit();
    await refused;
    expect(world.life.state).toBe("closed");
  });

  it("that is closed while a session is opened for nobody ends that thread, and waits for it", async () => {
    const world = await open();
    world.life.renew();
    world.thread.exit();
    await passes();
    let isClosed = false;
    const closed = world.life
      .close(() => Promise.resolve(), LIMIT_MS)
      .then(() => {
        isClosed = true;
      });
    await passes();
    expect([world.thread.isEnding, isClosed]).toEqual([true, false]);
    world.thread.exit();
    await closed;
  });

  it("that lost the directory kills the session that is being closed in order for a new one", async () => {
    const world = await open();
    const { thread } = world;
    const kill = vi.spyOn(thread, "kill");
    world.life.renew();
    world.life.lose(LOST);
    await passes();
    expect(kill).toHaveBeenCalledWith(LOST);
    thread.exit();
    await passes();
    expect([world.life.state, world.opened]).toEqual(["lost", 1]);
    await expect(world.life.session()).rejects.toBe(LOST);
  });
});
