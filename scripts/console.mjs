/**
 * Bundles the console (src/console) into dist/console: one page, its styles, and scripts whose names contain a
 * hash of their content, so that browsers may cache them. The search in the page is the library as its users
 * import it: dist/packages/library.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename } from "node:path";
import { build } from "esbuild";

/**
 * @param root the checkout, with the library staged.
 * @param options  isMapped: for `npm run coverage`: not minified, with source maps beside the scripts.
 */
export async function buildConsole(root, { isMapped = false } = {}) {
  const outdir = `${root}dist/console`;
  rmSync(outdir, { recursive: true, force: true });
  mkdirSync(outdir, { recursive: true });
  const common = {
    absWorkingDir: root,
    preserveSymlinks: true,
    bundle: true,
    minify: !isMapped,
    ...(isMapped ? { sourcemap: "external" } : {}),
    format: "esm",
    target: "es2022",
    outdir,
    entryNames: "assets/[name]-[hash]",
    chunkNames: "assets/[name]-[hash]",
    jsx: "automatic",
    jsxImportSource: "preact",
    alias: { lodestone: `${root}dist/packages/library/dist/index.js` },
    legalComments: "none",
    metafile: true,
    logLevel: "warning",
  };
  const worker = await build({ ...common, entryPoints: ["src/console/map/map-worker.ts"], splitting: true });
  const workerFile = outputOf(worker.metafile, "src/console/map/map-worker.ts").script;
  const page = await build({
    ...common,
    entryPoints: ["src/console/main.tsx"],
    splitting: true,
    define: { MAP_WORKER_FILE: JSON.stringify(workerFile) },
  });
  const { script, style } = outputOf(page.metafile, "src/console/main.tsx");
  const html = readFileSync(`${root}src/console/index.html`, "utf8");
  // Relative to /console, so that it also works where a proxy serves under a path of its own.
  writeFileSync(`${outdir}/index.html`, html.replace("SCRIPT_FILE", script).replace("STYLE_FILE", style));
  writeFileSync(`${outdir}/THIRD-PARTY-NOTICES.md`, noticesOf(root, [worker.metafile, page.metafile]));
}

function outputOf(metafile, entryPoint) {
  const found = Object.entries(metafile.outputs).find(([, output]) => output.entryPoint === entryPoint);
  const inPage = (path) => `console/assets/${basename(path)}`;
  return { script: inPage(found[0]), style: found[1].cssBundle === undefined ? "" : inPage(found[1].cssBundle) };
}

/** The licences of the packages whose code is in the files. */
function noticesOf(root, metafiles) {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  const folders = [...new Set(inputs.map((path) => /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0]).filter(Boolean))].sort();
  const notices = folders.map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(`${root}${folder}/package.json`, "utf8"));
    const file = readdirSync(`${root}${folder}`).find((entry) => /^licen[cs]e/i.test(entry));
    const text =
      file !== undefined && existsSync(`${root}${folder}/${file}`) ? readFileSync(`${root}${folder}/${file}`, "utf8").trim() : "";
    return `## ${name} ${version}\n\nLicence: ${license}.\n\n${text}\n`;
  });
  return `# What else is in the files of the console\n\n${notices.join("\n")}`;
}
