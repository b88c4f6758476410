/** Indexes kept in a browser under names: what IndexedDbStore and OpfsStore have in common. */
import type { ByteSource, ByteStream } from "../core/byte-stream.ts";
import { checkType } from "../core/options.ts";
import type { TransferOptions } from "../core/transfer.ts";
import { LodestoneError } from "../errors/lodestone-error.ts";
import { quoted } from "../errors/value-in-words.ts";

/** VectorIndex or ParallelVectorIndex. */
export interface Saveable {
  toStream(options?: TransferOptions): ByteStream;
}

/** The class of either. */
export interface Loader<Index, Options extends TransferOptions> {
  fromStream(source: ByteSource, options?: Options): Promise<Index>;
}

export abstract class SnapshotStore {
  /**
   * Keeps the index under a name, and replaces what was there before. After an error the previous content is
   * still there.
   *
   * @throws what the index's toStream throws; {LodestoneError} UNAVAILABLE when the browser has no such store
   *   or no room; the signal's reason.
   */
  async save(name: string, index: Saveable, options: TransferOptions = {}): Promise<void> {
    checkName(name);
    checkType(typeof index?.toStream === "function", "index", index, "a VectorIndex or a ParallelVectorIndex");
    await this.write(name, index.toStream(options));
  }

  /**
   * @param kind  the class of the index to make.
   * @throws {LodestoneError} NOT_FOUND for an unknown name; what its fromStream throws.
   */
  async load<Index, Options extends TransferOptions>(name: string, kind: Loader<Index, Options>, options?: Options): Promise<Index> {
    checkName(name);
    checkType(typeof kind?.fromStream === "function", "kind", kind, "VectorIndex or ParallelVectorIndex");
    const source = await this.read(name);
    if (source === undefined) throw new LodestoneError("NOT_FOUND", `No index is kept under the name ${quoted(name)}.`);
    return kind.fromStream(source, options);
  }

  /** @returns whether there was one. */
  abstract delete(name: string): Promise<boolean>;

  /** In the order of their UTF-16 code units. */
  abstract names(): Promise<string[]>;

  /** Stores all of the stream under the name, or changes nothing. */
  protected abstract write(name: string, stream: ByteStream): Promise<void>;

  /** undefined: there is none. */
  protected abstract read(name: string): Promise<ByteSource | undefined>;
}

function checkName(name: string): void {
  checkType(typeof name === "string" && name !== "", "name", name, "a text of at least one character");
}

/** For what a browser refuses. */
export function unavailable(what: string, cause?: unknown): LodestoneError {
  const why = cause instanceof Error ? ` (${cause.name}: ${cause.message})` : "";
  return new LodestoneError("UNAVAILABLE", `${what}${why}.`, { cause });
}
