/** @param root  of the checkout, with a slash at its end. Writes dist/build.json: `{commit?}`. */
export function writeBuildIdentity(root: string): void;
