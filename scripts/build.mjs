/** Builds what ships, into dist/: assembly/ -> WebAssembly (asc), src/ -> JavaScript and declarations (tsc). `npm ci` runs it through `prepare`. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const bin = (name) => `${root}node_modules/.bin/${name}`;
const run = (command, ...args) => execFileSync(command, args, { cwd: root, stdio: "inherit" });

mkdirSync(`${root}build`, { recursive: true });
if (existsSync(`${root}assembly/index.ts`)) run(bin("asc"), "assembly/index.ts", "--target", "simd");
run(bin("tsc"), "-p", "tsconfig.json");
