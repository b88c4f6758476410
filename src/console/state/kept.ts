/** What lasts as long as the page is open, also while another view is shown: what was typed, what was found, what can be undone. */
import { useState } from "preact/hooks";

const kept = new Map<string, unknown>();

/** The same value for the same key, until all is forgotten. */
export function keptFor<T>(key: string, first: () => T): T {
  if (!kept.has(key)) kept.set(key, first());
  return kept.get(key) as T;
}

/** Like `useState`, for a key that stays the same as long as the component is there. */
export function useKept<T>(key: string, first: () => T): [T, (value: T) => void] {
  const [value, setValue] = useState(() => keptFor(key, first));
  const keep = (next: T): void => {
    kept.set(key, next);
    setValue(() => next);
  };
  return [value, keep];
}

export const forget = (key: string): boolean => kept.delete(key);

/** Another key may not see what this one saw. */
export const forgetKept = (): void => kept.clear();
