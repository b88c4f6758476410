/** Stages the package `lodestone-adapters` in dist/packages/adapters: the files of adapters/ as they are, with the project's version. */
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { commonFields, projectManifest } from "./manifest.mjs";

export function stageAdapters(root) {
  const to = `${root}dist/packages/adapters/`;
  rmSync(to, { recursive: true, force: true });
  cpSync(`${root}adapters`, to, { recursive: true });
  cpSync(`${root}LICENSE`, `${to}LICENSE`);
  const own = JSON.parse(readFileSync(`${root}adapters/package.json`, "utf8"));
  const project = projectManifest(root);
  const manifest = { ...own, ...commonFields(project), peerDependencies: { ...own.peerDependencies, lodestone: project.version } };
  writeFileSync(`${to}package.json`, `${JSON.stringify(manifest, null, 2)}\n`);
}
