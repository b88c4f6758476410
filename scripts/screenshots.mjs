/**
 * Pictures of the console for the documentation (docs/images), of the real server with the demo, in Chromium.
 * Run by `npm run docs:screenshots`, and looked at before they are committed. With an argument: into that
 * folder, and of every view on a phone, too.
 */
import { mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { launchChromium } from "../test/browser/launch.ts";
import { FINDERS } from "../test/support/finders.ts";
import { startServer } from "../test/support/server.ts";

const [folder = fileURLToPath(new URL("../docs/images/", import.meta.url))] = process.argv.slice(2);
const isForReview = process.argv.length > 2;

const WIDE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

/** Each view, and how one sees that it is there. */
const VIEWS = [
  { name: "home", hash: "#/home", ready: ".snippets" },
  { name: "search", hash: "#/search/demo:main/colors", ready: ".terms" },
  { name: "table", hash: "#/table/demo:main/colors", ready: ".grid-body .grid-row" },
  { name: "sql", hash: "#/sql/demo:main/colors", ready: ".sql-editor" },
  { name: "schema", hash: "#/schema/demo:main/colors", ready: ".schema-panel" },
  { name: "server", hash: "#/server/demo:main/colors", ready: ".plot canvas" },
  { name: "reference", hash: "#/reference/demo:main/colors", ready: ".operation" },
];

/** In docs/images. */
const KEPT = ["search"];

mkdirSync(folder, { recursive: true });
const server = await startServer({ args: ["--demo"] });
const browser = await launchChromium(FINDERS.chromium());
try {
  for (const colorScheme of ["light", "dark"]) {
    for (const [suffix, viewport] of isForReview
      ? [
          ["", WIDE],
          ["-phone", PHONE],
        ]
      : [["", WIDE]]) {
      const page = await browser.newPage({ viewport, colorScheme, deviceScaleFactor: isForReview ? 1 : 1.5 });
      for (const { name, hash, ready } of VIEWS.filter((view) => isForReview || KEPT.includes(view.name))) {
        await page.goto(`${server.url}/console${hash}`);
        await page.waitForSelector(ready);
        await page.waitForTimeout(400);
        await page.screenshot({ path: `${folder}/console-${name}-${colorScheme}${suffix}.png`, fullPage: suffix !== "" });
      }
      await page.close();
    }
  }
} finally {
  await browser.close();
  await server.stop();
}
