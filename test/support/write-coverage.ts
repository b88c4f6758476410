/**
 * `npm run coverage`: vitest ends its processes by a signal, which would lose what they and their threads have
 * counted.
 */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

process.once("SIGTERM", () => process.exit());
afterAll(() => takeCoverage());
