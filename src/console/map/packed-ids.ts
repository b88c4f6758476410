/**
 * Ids as bytes, which a worker transfers to the page without a copy. 100,000 strings would block the page
 * while they are created there.
 */
export interface PackedIds {
  /** UTF-8, one id after the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The end of each id, in bytes. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

export function packIds(ids: readonly string[]): PackedIds {
  const bytes = new TextEncoder().encode(ids.join(""));
  const ends = new Uint32Array(ids.length);
  let end = 0;
  for (const [row, id] of ids.entries()) {
    end += utf8Length(id);
    ends[row] = end;
  }
  return { bytes, ends };
}

export function idAt({ bytes, ends }: PackedIds, row: number): string {
  return new TextDecoder().decode(bytes.subarray(row === 0 ? 0 : ends[row - 1], ends[row]));
}

function utf8Length(text: string): number {
  let length = 0;
  for (const character of text) {
    const code = character.codePointAt(0) as number;
    length += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
  }
  return length;
}
