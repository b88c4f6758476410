/** `npm run coverage`: vitest ends its processes by a signal, which would lose what they have counted. */
import { takeCoverage } from "node:v8";
import { afterAll } from "vitest";

afterAll(() => takeCoverage());
