/**
 * PGlite's file system over a real directory, with an fsync that reaches the disk.
 *
 * Emscripten's NODEFS has no fsync operation, so every fsync by PostgreSQL would be a no-op. fdatasync cannot
 * be hooked at all, so the server must run with `wal_sync_method=fsync`. PostgreSQL also syncs directories
 * (after creating or renaming WAL segments), which NODEFS opens without a descriptor; those are opened here
 * just for the fsync. Shown by test/records/engine/durability.test.ts (strace).
 */
import { closeSync, fsyncSync, openSync } from "node:fs";
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

interface NodeFsType {
  stream_ops: { fsync?: (stream: NodeFsStream) => number; write: Operation<NodeFsStream>; close: Operation<NodeFsStream> };
  node_ops: Record<(typeof CHANGES_OF_NAMES)[number], Operation>;
  realPath(node: unknown): string;
}

/** Operations that change a file other than by writing to it. */
const CHANGES_OF_NAMES = ["setattr", "mknod", "rename", "unlink", "rmdir", "symlink"] as const;

const EMSCRIPTEN_EIO = 29;

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
      stream_ops.write = (stream, ...more) => {
        if (deferred.isPending && !isLogFile(stream)) deferred.settle();
        return write(stream, ...more);
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

/** Makes creations and renames inside a directory durable. */
function fsyncDirectory(path: string): void {
  const descriptor = openSync(path, "r");
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}
