/**
 * Replicas in pages of a Chromium, kept in IndexedDB. Pages are killed, and the browser is killed and started again with what its
 * profile has.
 */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { BrowserContext, Page } from "playwright-core";
import type * as Lodestone from "../../../dist/index.js";
import { launchProfile } from "../../browser/launch.ts";
import { serveStatic } from "../../browser/static-server.ts";
import { isAway, type ReadReplica, type ReplicaConsistency, type ReplicaSearch } from "./read-replica.ts";
import { vectorOf } from "./tables.ts";

declare const lodestone: typeof Lodestone;
declare global {
  var replica: Lodestone.Replica;
}

const LIBRARY = fileURLToPath(new URL("../../../dist/packages/library/dist/index.js", import.meta.url));
const PAGE = `<!doctype html><title>replica</title><script type="module">globalThis.lodestone = await import("./lodestone.js");</script>`;

export class ReplicaBrowser {
  readonly #executablePath: string;
  readonly #profile: string;
  #site!: Awaited<ReturnType<typeof serveStatic>>;
  #context!: BrowserContext;

  private constructor(executablePath: string, profile: string) {
    this.#executablePath = executablePath;
    this.#profile = profile;
  }

  /** @param profile  a folder that is its own. */
  static async start(executablePath: string, profile: string): Promise<ReplicaBrowser> {
    const browser = new ReplicaBrowser(executablePath, profile);
    browser.#site = await serveStatic(
      new Map([
        ["/", { type: "text/html", body: PAGE }],
        ["/lodestone.js", { type: "text/javascript", body: readFileSync(LIBRARY) }],
      ]),
    );
    await browser.restart();
    return browser;
  }

  async newPage(): Promise<Page> {
    const page = await this.#context.newPage();
    await page.goto(this.#site.url);
    await page.waitForFunction(() => "lodestone" in globalThis);
    return page;
  }

  /** SIGKILL. Its pages are gone. */
  async kill(): Promise<void> {
    const closed = new Promise((resolve) => this.#context.once("close", resolve));
    const session = await this.#context.browser()!.newBrowserCDPSession();
    const { processInfo } = await session.send("SystemInfo.getProcessInfo");
    process.kill(processInfo.find(({ type }) => type === "browser")!.id, "SIGKILL");
    await closed;
  }

  async restart(): Promise<void> {
    this.#context = await launchProfile(this.#executablePath, this.#profile);
  }

  async close(): Promise<void> {
    await this.#context.close();
    await this.#site.close();
  }
}

export class PageReplica implements ReadReplica {
  readonly #browser: ReplicaBrowser;
  readonly #url: string;
  readonly #database: string;
  readonly #onPhase: (phase: string) => void;
  /** undefined: it is being opened. */
  #page: Page | undefined;

  private constructor(browser: ReplicaBrowser, url: string, database: string, onPhase: (phase: string) => void) {
    this.#browser = browser;
    this.#url = url;
    this.#database = database;
    this.#onPhase = onPhase;
  }

  /** @param database  those with the same one share a replica. */
  static async open(browser: ReplicaBrowser, url: string, database: string, onPhase: (phase: string) => void): Promise<PageReplica> {
    const replica = new PageReplica(browser, url, database, onPhase);
    await replica.reopen();
    return replica;
  }

  get isOpen(): boolean {
    return this.#page !== undefined;
  }

  async reopen(): Promise<void> {
    const page = await this.#browser.newPage();
    await page.exposeFunction("onPhase", this.#onPhase);
    // Others whose process is the same are killed with one.
    page.once("crash", () => this.abandon(page));
    await page.evaluate(
      async ({ url, database }) => {
        globalThis.replica = await lodestone.Replica.open({
          url,
          table: "items",
          columns: ["grp", "val", "embedding"],
          store: new lodestone.IndexedDbReplicaStore(database),
          // A method: soaks run under tsx, which names other functions by a helper that a page does not have.
          onStatus({ phase }) {
            (globalThis as unknown as { onPhase(phase: string): void }).onPhase(phase);
          },
        });
      },
      { url: this.#url, database: this.#database },
    );
    this.#page = page;
  }

  /** The page's process ends at once, as when it has no memory. */
  async kill(): Promise<void> {
    const page = this.#page!;
    this.abandon();
    const crashed = page.waitForEvent("crash");
    const session = await page.context().newCDPSession(page);
    session.send("Page.crash").catch(() => {});
    await crashed;
    await page.close();
  }

  /** What is asked of it now has no answer. */
  abandon(page = this.#page): void {
    if (this.#page === page) this.#page = undefined;
  }

  async search(consistency: ReplicaConsistency, search: ReplicaSearch): Promise<Lodestone.SearchResult | undefined> {
    const page = this.#page;
    if (page === undefined) return undefined;
    const asking = page.evaluate(
      async ({ query, consistency, search }) => {
        try {
          if (consistency === "current") await replica.current();
          return { found: await replica.search(query, { similarity: "l2", ...search }) };
        } catch (error) {
          const { name, message, code } = error as Lodestone.LodestoneError;
          return { failure: { name, message, code } };
        }
      },
      { query: vectorOf(0), consistency, search },
    );
    const answer = await asking.catch((error: Error) => {
      if (this.#page === page && !/crashed|closed/.test(error.message)) throw error;
      this.abandon(page);
      return undefined;
    });
    if (answer?.failure === undefined) return answer?.found;
    if (isAway(answer.failure)) return undefined;
    throw new Error(`${answer.failure.name}: ${answer.failure.message}`);
  }

  async current(): Promise<boolean> {
    return (await this.search("current", { k: 1 })) !== undefined;
  }

  async close(): Promise<void> {
    await this.#page?.close();
  }
}
