/**
 * Node's own modules, where there is Node (or Bun, or Deno). Asked for at run time: an import of `node:…` is what bundlers for browsers stumble over.
 * Node has `process.getBuiltinModule` since 20.16.
 */
interface NodeModules {
  "node:worker_threads": typeof import("node:worker_threads");
  "node:os": typeof import("node:os");
  "node:util": typeof import("node:util");
}

export function nodeModule<Name extends keyof NodeModules>(name: Name): NodeModules[Name] | undefined {
  // As a property: bundlers replace the free name `process` in what goes to browsers.
  const { process } = globalThis;
  return process?.versions?.node === undefined ? undefined : (process.getBuiltinModule?.(name) as NodeModules[Name] | undefined);
}
