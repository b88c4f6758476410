/** The scopes of API keys, and what each may do. Below every layer: the server checks them, the console shows them. */

/** Each scope includes those before it. */
export const SCOPES = ["read", "write", "admin"] as const;

export type Scope = (typeof SCOPES)[number];

/** What an endpoint asks of its caller. "public" needs no key; "admin" is whatever changes schemas, branches or databases. */
export type Access = "public" | Scope;

export function isAllowed(scope: Scope, access: Access): boolean {
  return access === "public" || SCOPES.indexOf(scope) >= SCOPES.indexOf(access);
}
