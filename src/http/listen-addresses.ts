/**
 * Where the server listens. By default on both loopback addresses, since `localhost` may resolve to either; on
 * other addresses only when keys are required.
 */
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { LodestoneError } from "../errors/lodestone-error.ts";

/** @returns addresses to bind, the first of which must succeed. @throws {LodestoneError} INVALID. */
export async function resolveListenAddresses(host: string | undefined, hasKeys: boolean): Promise<string[]> {
  const addresses = host === undefined || host === "localhost" ? ["127.0.0.1", "::1"] : await resolve(host);
  const open = addresses.find((address) => !isLoopback(address));
  if (open !== undefined && !hasKeys) {
    throw new LodestoneError(
      "INVALID",
      `Without API keys the server listens on loopback only, but "${host}" is reachable from other machines (${open}). ` +
        "Set up keys (--api-key, or lodestone keys create and --key-file), or leave out --host.",
    );
  }
  return addresses;
}

async function resolve(host: string): Promise<string[]> {
  if (isIP(host) !== 0) return [host];
  try {
    const found = await lookup(host, { all: true });
    return found.map(({ address }) => address);
  } catch {
    throw new LodestoneError("INVALID", `--host: "${host}" does not resolve to an address of this machine.`);
  }
}

function isLoopback(address: string): boolean {
  return address === "::1" || /^(::ffff:)?127\.\d+\.\d+\.\d+$/i.test(address);
}
