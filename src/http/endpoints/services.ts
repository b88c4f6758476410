/** What the endpoints call. */
import type { RecordStore } from "../../records/record-store.ts";
import type { ReplicaHub } from "../../replica/replica-hub.ts";
import type { SearchStore } from "../../search/search-store.ts";
import type { KeyManager } from "../keys/key-manager.ts";
import type { Metrics } from "../metrics.ts";

export interface Services {
  readonly records: RecordStore;
  readonly search: SearchStore;
  /** What replicas are given; undefined: there are none. */
  readonly replicas?: ReplicaHub | undefined;
  readonly metrics: Metrics;
  readonly version: string;
  readonly commit?: string | undefined;
  /** The keys, where the server asks for some. */
  readonly keys?: KeyManager;
  /** Where backups go; undefined: none can be made. */
  readonly backupDir?: string;
  /** A server whose searches are further behind than this is not ready. */
  readonly maxLagMs: number;
  /** Whether the server asks for keys. */
  readonly asksForKeys: boolean;
  /** Origins of pages that may call the server. */
  readonly corsOrigins?: readonly string[];
  /** Whether agents get tools that insert and delete; each still needs a key that may. */
  readonly agentsWrite?: boolean;
  /** True once the server has begun to shut down. */
  isDraining(): boolean;
}
