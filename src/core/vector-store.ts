import { checkType } from "./options.ts";
import { RowStore } from "./row-store.ts";
import type { VectorFile } from "./vector-file.ts";

/**
 * A file in which one index keeps its float32 vectors instead of memory. An index without one carries none of this code.
 */
export class VectorStore {
  /** Bundlers rename classes. */
  static readonly name: string = "VectorStore";
  readonly #file: VectorFile;

  /**
   * @param file  of `openVectorFile`, or a `FileSystemSyncAccessHandle`. What it holds is overwritten, unless an index is loaded that
   *   belongs to it.
   */
  constructor(file: VectorFile) {
    checkType(typeof file?.read === "function" && typeof file.truncate === "function", "file", file, "a file, as openVectorFile opens one");
    this.#file = file;
  }

  /** @internal */
  open(rowBytes: number): RowStore {
    return new RowStore(this.#file, rowBytes);
  }
}
