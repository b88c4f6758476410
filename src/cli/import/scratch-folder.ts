/**
 * A folder of this run's own for what it needs only while it runs. Its name cannot be foreseen and nobody else may
 * enter it (`mkdtemp`, mode 0700), so nothing in it was put there by another user. It is removed when the run ends,
 * also by an error or a second Ctrl-C; only kill -9 leaves it.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class ScratchFolder {
  #path: string | undefined;
  #files = 0;
  readonly #remove = (): void => {
    if (this.#path !== undefined) rmSync(this.#path, { recursive: true, force: true });
    this.#path = undefined;
  };

  /** A new file, open for writing, which only this user may read. Close the handle. */
  async createFile(): Promise<{ readonly path: string; readonly handle: FileHandle }> {
    if (this.#path === undefined) {
      this.#path = mkdtempSync(join(tmpdir(), "lodestone-"));
      process.once("exit", this.#remove);
    }
    const path = join(this.#path, `${++this.#files}`);
    return { path, handle: await open(path, "wx", 0o600) };
  }

  remove(): void {
    process.off("exit", this.#remove);
    this.#remove();
  }
}
