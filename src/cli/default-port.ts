/** Where `lodestone serve` listens, and where the other commands look for it. */
export const DEFAULT_PORT = 8787;
