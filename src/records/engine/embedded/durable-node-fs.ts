/**
 * PGlite's file system over a real directory, with an fsync that reaches the disk.
 *
 * Emscripten's NODEFS has no fsync operation, so every fsync by PostgreSQL would be a no-op. fdatasync cannot
 * be hooked at all, so the server must run with `wal_sync_method=fsync`. PostgreSQL also syncs directories
 * (after creating or renaming WAL segments), which NODEFS opens without a descriptor; those are opened here
 * just for the fsync. Shown by test/records/engine/durability.test.ts (strace).
 */
import { closeSync, fstatSync, fsyncSync, openSync } from "node:fs";
import { PGlite } from "@electric-sql/pglite";
import { NodeFS } from "@electric-sql/pglite/nodefs";
import { crashPoint } from "../../../files/fault-points.ts";
import { type DeferredSync, isWithoutSync } from "./deferred-sync.ts";

interface NodeFsStream {
  readonly nfd?: number;
  readonly node: unknown;
}

interface EmscriptenModule {
  FS: {
    lookupPath(path: string): { node: { mount: { type: NodeFsType } } };
    ErrnoError: new (errno: number) => Error;
  };
}

type Operation<First = unknown> = (first: First, ...more: unknown[]) => unknown;
/** `offset` and `length` in bytes of the memory of PostgreSQL, `position` in the file. */
type Write = (stream: NodeFsStream, memory: Int8Array, offset: number, length: number, position: number) => unknown;

interface NodeFsType {
  stream_ops: { fsync?: (stream: NodeFsStream) => number; write: Write; close: Operation<NodeFsStream> };
  node_ops: Record<(typeof CHANGES_OF_NAMES)[number], Operation>;
  realPath(node: unknown): string;
}

/** Operations that change a file other than by writing to it. */
const CHANGES_OF_NAMES = ["setattr", "mknod", "rename", "unlink", "rmdir", "symlink"] as const;

const EMSCRIPTEN_EIO = 29;
/** Of a table or an index; PostgreSQL writes them one by one. */
const EMPTY_PAGE = Buffer.alloc(8_192);

export class DurableNodeFS extends NodeFS {
  readonly #deferred: DeferredSync;

  constructor(directory: string, deferred: DeferredSync) {
    super(directory);
    this.#deferred = deferred;
  }

  override async init(...args: Parameters<NodeFS["init"]>): ReturnType<NodeFS["init"]> {
    const deferred = this.#deferred;
    const result = await super.init(...args);
    const preRun = result.emscriptenOpts.preRun as unknown as ((module: EmscriptenModule) => void)[];
    preRun.push((module) => {
      const nodeFs = module.FS.lookupPath(PGlite.paths.PGDATA).node.mount.type;
      const { stream_ops, node_ops } = nodeFs;
      const isLogFile = ({ node }: NodeFsStream): boolean => nodeFs.realPath(node).includes("/pg_wal/");
      const { write, close } = stream_ops;
      stream_ops.write = (stream, memory, offset, length, position) => {
        if (deferred.isPending && !isLogFile(stream) && !appendsEmptyPage(stream, new Uint8Array(memory.buffer, offset, length), position))
          deferred.settle();
        return write(stream, memory, offset, length, position);
      };
      stream_ops.close = (stream, ...more) => {
        if (deferred.isPendingFor(stream.nfd)) deferred.settle();
        return close(stream, ...more);
      };
      for (const name of CHANGES_OF_NAMES) {
        const change = node_ops[name];
        node_ops[name] = (...given) => {
          deferred.settle();
          return change(...given);
        };
      }
      stream_ops.fsync = (stream) => {
        try {
          const path = nodeFs.realPath(stream.node);
          const isLog = path.includes("/pg_wal/");
          if (isLog && stream.nfd !== undefined && deferred.defers(stream.nfd)) return 0;
          deferred.settle();
          crashPoint(isLog ? "before-sync" : "checkpoint");
          if (stream.nfd !== undefined) fsyncSync(stream.nfd);
          else fsyncDirectory(path);
          if (isLog) crashPoint("after-sync");
        } catch (error) {
          // PostgreSQL must hear of every other error: it stops.
          if (!isWithoutSync(error)) throw new module.FS.ErrnoError(EMSCRIPTEN_EIO);
        }
        return 0;
      };
    });
    return result;
  }
}

/**
 * Whether a write only makes a file longer, by a page that holds nothing. PostgreSQL extends a table so before it logs what it will
 * put there, so such a write never rests on the log: after a crash the page is empty, and used again.
 */
function appendsEmptyPage({ nfd }: NodeFsStream, bytes: Uint8Array, position: number): boolean {
  return nfd !== undefined && EMPTY_PAGE.equals(bytes) && position >= fstatSync(nfd).size;
}

/** Makes creations and renames inside a directory durable. */
function fsyncDirectory(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
