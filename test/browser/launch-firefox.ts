/**
 * Debian's Firefox, by WebDriver BiDi: Playwright drives its own build of Firefox by a protocol that no other has, and any Firefox by BiDi
 * when it is asked for one of Mozilla's channels.
 */
import { type Browser, firefox } from "playwright-core";
import { LIMIT_MS } from "../support/patience.ts";

interface Session {
  send(method: string, params: object): Promise<object>;
}

/** What Playwright does not show: its own side of a browser, which runs in this process. */
interface InProcess {
  readonly _connection: { toImpl(browser: Browser): { readonly _browserSession: Session } };
}

export async function launchFirefox(executablePath: string): Promise<Browser> {
  const browser = await firefox.launch({ channel: "moz-firefox", executablePath, timeout: LIMIT_MS });
  // Every new page is told how its screen is, by commands of which Firefox 153 does not know one (setMediaFeaturesOverride: light or dark).
  // The page is then as Firefox itself is.
  const session = (browser as unknown as InProcess)._connection.toImpl(browser)._browserSession;
  const send = session.send.bind(session);
  session.send = (method, params) =>
    send(method, params).catch((error: Error) => {
      if (method.startsWith("emulation.") && /unknown command/.test(error.message)) return {};
      throw error;
    });
  return browser;
}
