/**
 * Whom a connection or a request comes from. What clients share is counted by network: an IPv4 address, or the /64 of an
 * IPv6 address, since a single host usually has all of these. Behind a proxy it is the address that the proxy names in
 * X-Forwarded-For, if the operator trusts that proxy; anybody else could name any address.
 */
import { BlockList, isIP, SocketAddress } from "node:net";
import { LodestoneError } from "../../errors/lodestone-error.ts";

const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 4 ? "ipv4" : "ipv6");

/** The addresses of proxies whose X-Forwarded-For is believed. */
export class TrustedProxies {
  readonly #list = new BlockList();
  readonly #isEmpty: boolean;

  /** @param entries  addresses and networks: `10.0.0.7`, `10.0.0.0/8`, `fd00::/8`. @throws {LodestoneError} INVALID. */
  constructor(entries: readonly string[] = []) {
    this.#isEmpty = entries.length === 0;
    for (const entry of entries) {
      const [, address = "", prefix] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(entry) ?? [];
      const bits = isIP(address) === 4 ? 32 : 128;
      const length = prefix === undefined ? bits : Number(prefix);
      if (isIP(address) === 0 || length > bits) {
        throw new LodestoneError(
          "INVALID",
          `--trust-proxy: "${entry}" is neither an address nor a network. Expected such as 10.0.0.7, 10.0.0.0/8 or fd00::/8.`,
        );
      }
      this.#list.addSubnet(address, length, familyOf(address));
    }
  }

  includes(address: string): boolean {
    return !this.#isEmpty && isIP(address) !== 0 && this.#list.check(address, familyOf(address));
  }

  /**
   * The last address on the way that is not a trusted proxy's: whoever wrote it there is one. What stands before it
   * may be invented.
   *
   * @param forwardedFor  the header X-Forwarded-For: `client, proxy, proxy`.
   */
  clientOf(remoteAddress: string, forwardedFor: string | undefined): string {
    let client = remoteAddress;
    const named = forwardedFor === undefined || this.#isEmpty ? [] : forwardedFor.split(",");
    while (this.includes(client)) {
      const before = named.pop()?.trim() ?? "";
      if (isIP(before) === 0) break;
      client = before;
    }
    return client;
  }
}

/** What counts as one client: `192.0.2.7`, `2001:db8:0:1::/64`. */
export function networkOf(address: string): string {
  if (isIP(address) !== 6) return address;
  // In its shortest form, without a zone.
  const plain = new SocketAddress({ address: address.replace(/%.*$/, ""), family: "ipv6" }).address;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/.exec(plain)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = "", after] = plain.split("::");
  const first = before === "" ? [] : before.split(":");
  const last = after === undefined || after === "" ? [] : after.split(":");
  const missing = after === undefined ? 0 : 8 - first.length - last.length;
  const groups = [...first, ...Array<string>(Math.max(0, missing)).fill("0"), ...last];
  return `${groups.slice(0, 4).join(":")}::/64`;
}
