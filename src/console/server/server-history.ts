/** What the server has reported since its view was first opened: read on while other views are shown, and not while the page is hidden. */
import { signal } from "@preact/signals";
import { ApiError, apiBase, call, messageOf } from "../api/client.ts";
import { keptFor } from "../state/kept.ts";
import { connection, key } from "../state/page-session.ts";
import { parseMetrics, type Reading, withReading } from "./metrics.ts";

const WATCHED_MS = 2_000;
/** While another view is shown. */
const UNWATCHED_MS = 5_000;

export interface Readiness {
  readonly status: string;
  readonly message?: string;
  readonly pending?: number;
  readonly part?: { readonly index: number; readonly of: number; readonly missing: readonly number[] };
}

/** The same until the key is forgotten. */
export const serverHistory = (): ServerHistory => keptFor("server history", () => new ServerHistory());

class ServerHistory {
  readonly readings = signal<readonly Reading[]>([]);
  readonly readiness = signal<Readiness | undefined>(undefined);
  readonly fault = signal("");
  readonly #key = key.peek();
  #watchers = 0;
  #isReading = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Reads at once, and often until the function that it returns is called. */
  watch(): () => void {
    this.#watchers++;
    void this.#read();
    return () => {
      this.#watchers--;
    };
  }

  async #read(): Promise<void> {
    if (this.#isReading) return;
    this.#isReading = true;
    clearTimeout(this.#timer);
    try {
      if (!document.hidden) {
        const metrics = parseMetrics(await call<string>("GET", "/metrics"));
        this.readings.value = withReading(this.readings.peek(), { time: Date.now() / 1000, metrics });
        this.readiness.value = await readReadiness();
        this.fault.value = "";
      }
    } catch (error) {
      if (connection.peek() === "up") this.fault.value = messageOf(error);
    }
    this.#isReading = false;
    // Another key does not go on with the history of this one.
    if (key.peek() === this.#key) this.#timer = setTimeout(() => void this.#read(), this.#watchers > 0 ? WATCHED_MS : UNWATCHED_MS);
  }
}

/** Not being ready is an answer, not a fault. */
async function readReadiness(): Promise<Readiness> {
  const response = await fetch(`${apiBase()}/readyz`, { cache: "no-store" });
  if (response.status !== 200 && response.status !== 503) throw new ApiError(response.status, `The server answered ${response.status}.`);
  return (await response.json()) as Readiness;
}
