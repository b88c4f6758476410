/**
 * Access to Node's built-in modules, where they exist (Node, Bun, Deno). They are looked up at run time,
 * because bundlers for browsers fail on an import of `node:…`. Node has `process.getBuiltinModule` since
 * 20.16.
 */
interface NodeModules {
  "node:worker_threads": typeof import("node:worker_threads");
  "node:os": typeof import("node:os");
  "node:fs": typeof import("node:fs");
  "node:util": typeof import("node:util");
}

export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  // Read as a property, because bundlers replace the free name `process` in browser builds.
  const { process } = globalThis;
  return process?.versions?.node === undefined ? undefined : (process.getBuiltinModule?.(name) as NodeModules[Name] | undefined);
}
