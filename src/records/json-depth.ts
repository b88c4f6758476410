/** How deep JSON may be nested in a json column, whoever writes it: so what is stored can be read, answered and copied by everything that is recursive. */

/** Objects and arrays inside of each other. */
export const MAX_JSON_DEPTH = 128;

/** Linear; nothing recursive runs. Text that is no JSON gives a number that means nothing. */
export function jsonDepth(source: string): number {
  let depth = 0;
  let deepest = 0;
  let inString = false;
  for (let i = 0; i < source.length; i++) {
    const code = source.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i++;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x5b || code === 0x7b) deepest = Math.max(deepest, ++depth);
    else if (code === 0x5d || code === 0x7d) depth--;
  }
  return deepest;
}

/** The same in PostgreSQL, for a jsonb expression: true for null. The outermost is level 0. */
export const jsonDepthCondition = (expression: string): string =>
  `NOT pg_catalog.jsonb_path_exists(${expression}, 'strict $.**{${MAX_JSON_DEPTH}}.type() ? (@ == "array" || @ == "object")')`;
