/**
 * What a store has of a replica: the state of some time, and the groups of changes since then, one after the other. It is what was seen
 * last, or nothing.
 */
import { encodeFrame, FrameReader, type OpenFrame, type ReadFrame } from "../../frames/frames.ts";
import type { ReplicaState } from "./replica-state.ts";
import type { ReplicaStore } from "./replica-store.ts";

/** What is appended before all is written anew. */
const LEAST_REWRITTEN_BYTES = 8 << 20;

export class KeptReplica {
  /** undefined: nothing is kept. */
  readonly #store: ReplicaStore | undefined;
  readonly #name: string;
  /** What the store has can be continued. */
  #isKept = false;
  /** It ends with a group that is not whole: nothing can be appended. */
  #isCutOff = false;
  #bytes = 0;
  #appendedBytes = 0;

  /** @param name  under which it is kept. */
  constructor(store: ReplicaStore | undefined, name: string) {
    this.#store = store;
    this.#name = name;
  }

  /**
   * What was kept, as far as it goes. Then call `tidy`.
   * @param build  makes a state of frames; undefined: they are of none.
   */
  async restore(build: (frames: AsyncIterable<ReadFrame>) => Promise<ReplicaState | undefined>): Promise<ReplicaState | undefined> {
    if (this.#store === undefined) return undefined;
    try {
      const reader = new FrameReader();
      const state = await build(this.#read(this.#store, reader));
      this.#isKept = state !== undefined;
      this.#isCutOff = reader.pendingBytes > 0;
      return state;
    } catch {
      // Damaged, or of another format: the server has it all.
      await this.#store.delete(this.#name).catch(() => {});
      return undefined;
    }
  }

  /** Call it before the group can be seen: what is kept is then never behind that. */
  async append(open: OpenFrame, group: readonly ReadFrame[], at: string): Promise<void> {
    if (this.#store === undefined || group.length === 0) return;
    const pieces = [
      encodeFrame(open),
      ...group.map(({ frame, vectors }) => encodeFrame(frame, [vectors])),
      encodeFrame({ type: "position", at }),
    ];
    this.#appendedBytes += pieces.reduce((sum, { length }) => sum + length, 0);
    if (this.#isKept) await this.#store.append(this.#name, pieces).catch((error: Error) => this.#notKept(error));
  }

  /** Writes the state anew if what was appended is much, or the end is cut off. */
  async tidy(state: ReplicaState): Promise<void> {
    if (this.#isCutOff || this.#appendedBytes > Math.max(LEAST_REWRITTEN_BYTES, this.#bytes)) await this.replace(state);
  }

  /** Writes the state in place of what was kept. */
  async replace(state: ReplicaState): Promise<void> {
    if (this.#store === undefined) return;
    let bytes = 0;
    const counted = async function* (): AsyncGenerator<Uint8Array<ArrayBuffer>, void, undefined> {
      for await (const piece of state.frames()) {
        bytes += piece.length;
        yield piece;
      }
    };
    [this.#isKept, this.#isCutOff] = [true, false];
    await this.#store.replace(this.#name, counted()).catch((error: Error) => this.#notKept(error));
    [this.#bytes, this.#appendedBytes] = [bytes, 0];
  }

  /** Call it before a later state can be seen that what is kept does not lead to. */
  async forget(): Promise<void> {
    if (this.#isKept) await this.#store!.delete(this.#name).catch((error: Error) => this.#notKept(error));
    this.#isKept = false;
  }

  async *#read(store: ReplicaStore, reader: FrameReader): AsyncGenerator<ReadFrame, void, undefined> {
    for await (const piece of store.read(this.#name)) {
      this.#bytes += piece.length;
      yield* reader.read(piece);
    }
  }

  /**
   * The replica works without, and tries to keep its state again after as many bytes of changes as it has. Until then the next start
   * loads it from the server: an older state would be behind what was answered, and one with a gap would be wrong.
   */
  async #notKept(error: Error): Promise<void> {
    this.#isKept = false;
    console.warn(`The replica is not kept for the next start: ${error.message}`);
    await this.#store!.delete(this.#name).catch(() => {});
  }
}
