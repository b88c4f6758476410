/**
 * The session: the key (in memory, or for this tab's session if asked), what it may do, and whether the
 * server responds.
 */
import { computed, signal } from "@preact/signals";
import { isAllowed, type Scope } from "../../key-scopes.ts";

/** `GET /access`. */
export interface Access {
  readonly scope: Scope;
  /** null: all. */
  readonly databases: readonly string[] | null;
  /** null: the server requires no key. */
  readonly keyName: string | null;
  readonly version: string;
}

const STORED = "lodestone.key";

export const key = signal(sessionStorage.getItem(STORED) ?? "");
/** The server said 401. */
export const needsKey = signal(false);
export const access = signal<Access | undefined>(undefined);
export const connection = signal<"up" | "lost">("up");

export const mayWrite = computed(() => access.value !== undefined && isAllowed(access.value.scope, "write"));
export const mayAdminister = computed(() => access.value !== undefined && isAllowed(access.value.scope, "admin"));

/** @param keep  whether the key survives a reload of this tab. */
export function setKey(text: string, keep: boolean): void {
  key.value = text;
  needsKey.value = false;
  if (keep && text !== "") sessionStorage.setItem(STORED, text);
  else sessionStorage.removeItem(STORED);
}
