/**
 * Debian's Firefox, by WebDriver BiDi: Playwright drives its own build of Firefox by a protocol that no other has, and any Firefox by BiDi
 * when it is asked for one of Mozilla's channels.
 */
import { type Browser, firefox } from "playwright-core";
import { LIMIT_MS } from "../support/patience.ts";

/**
 * Commands of BiDi that Playwright sends to every browser and page, and no test needs. Debian has two releases of Firefox at a time: 140
 * knows no collector of bodies, no folder of downloads and few emulations, 153 does not know the one of light and dark.
 */
const DISPENSABLE = /^(network\.addDataCollector$|browser\.setDownloadBehavior$|emulation\.)/;

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly error?: string;
}

interface Transport {
  send(message: Message): void;
  onmessage?: (message: Message) => void;
}

/** What Playwright does not show: its own side of a browser, which runs in this process. */
interface InProcess {
  readonly _connection: { toImpl(type: typeof firefox): { readonly _bidiFirefox: BidiFirefox } };
}

interface BidiFirefox {
  connectToTransport(transport: Transport, options: object): Promise<object>;
}

/** A dispensable command that the browser does not know succeeds, without effect. */
function tolerant(transport: Transport): Transport {
  const dispensable = new Set<number>();
  const send = transport.send.bind(transport);
  transport.send = (message) => {
    if (DISPENSABLE.test(message.method ?? "")) dispensable.add(message.id!);
    send(message);
  };
  return new Proxy(transport, {
    get: (target, name) => Reflect.get(target, name, target),
    set(target, name, value) {
      if (name !== "onmessage" || value === undefined) return Reflect.set(target, name, value, target);
      target.onmessage = (message) => {
        const isDispensable = message.id !== undefined && dispensable.delete(message.id);
        value(isDispensable && message.error === "unknown command" ? { type: "success", id: message.id, result: {} } : message);
      };
      return true;
    },
  });
}

/** Whether a page's policy forbids scripts to the driver too, as that of Firefox 140 does. */
async function isDriverUnderPolicy(browser: Browser): Promise<boolean> {
  const page = await browser.newPage();
  await page.goto("data:text/html,<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">");
  try {
    await page.locator("html").evaluate(() => document.title);
    return false;
  } catch (error) {
    if (/blocked by CSP/.test((error as Error).message)) return true;
    throw error;
  } finally {
    await page.close();
  }
}

export async function launchFirefox(executablePath: string): Promise<Browser> {
  const bidi = (firefox as unknown as InProcess)._connection.toImpl(firefox)._bidiFirefox;
  if (!Object.hasOwn(bidi, "connectToTransport")) {
    const connect = bidi.connectToTransport.bind(bidi);
    bidi.connectToTransport = (transport, options) => connect(tolerant(transport), options);
  }
  const browser = await firefox.launch({ channel: "moz-firefox", executablePath, timeout: LIMIT_MS });
  if (await isDriverUnderPolicy(browser)) {
    console.warn("This Firefox applies a page's Content-Security-Policy to its driver too: pages are tested without the policy.");
    const newPage = browser.newPage.bind(browser);
    browser.newPage = async (options) => {
      const page = await newPage(options);
      await page.route("**/console", async (route) => {
        const response = await route.fetch();
        const { "content-security-policy": _policy, ...headers } = response.headers();
        await route.fulfill({ response, headers });
      });
      return page;
    };
  }
  return browser;
}
