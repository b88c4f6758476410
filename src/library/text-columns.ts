/**
 * Columns whose words can be searched, alone or together with vectors. The words are kept in an inverted index beside
 * the values, which follows every change. Snapshots have the values alone, the same bytes as those of Columns: the
 * words of a text are read faster than their postings could be checked, and the texts are needed anyway.
 */

import { checkType } from "../core/options.ts";
import type { CheckedValues } from "../core/row-columns.ts";
import type { RowDirectory } from "../core/row-directory.ts";
import type { HeldVectors, TextSearch, TextSearchResult } from "../core/text-search.ts";
import type { VectorShard } from "../core/vector-shard.ts";
import { quoted, quotedNames } from "../errors/value-in-words.ts";
import { clearBit, countBits, hasBit } from "../filter/bit-mask.ts";
import { idHash } from "../full-text/fusion.ts";
import { grown } from "../full-text/posting-lists.ts";
import { type IndexedText, TextIndex } from "../full-text/text-index.ts";
import { compareText } from "../text/code-point-order.ts";
import { Columns } from "./columns.ts";
import { finish, type RecordState, searchHeld, searchShard } from "./text-search.ts";
import type { ColumnTypes } from "./typed-columns.ts";

export class TextColumns<Types extends ColumnTypes = ColumnTypes> extends Columns<Types> {
  readonly #index = new TextIndex();
  #directory: RowDirectory | undefined;
  /** By row: `idHash` of its id; 0: not made yet. */
  #hashes = new Uint32Array(0);
  /** Of each search that goes on: the ids, as it began, of rows that have lost theirs since. */
  readonly #lost = new Set<Map<number, string>>();

  /**
   * @param types  as of Columns.
   * @param words  the columns whose words can be searched, of type "string" or "multiple"; default all of these.
   * @throws {TypeError} as Columns; for another name or type in `words`.
   */
  constructor(types: Types, words?: readonly (keyof Types & string)[]) {
    super(types);
    checkType(words === undefined || Array.isArray(words), "words", words, "an array of names");
    const possible = Object.keys(types).filter((name) => types[name] === "string" || types[name] === "multiple");
    for (const name of words ?? possible) {
      if (!possible.includes(name))
        throw new TypeError(
          `words: ${quoted(String(name))} is no column of type "string" or "multiple"; there are ${quotedNames(possible, "none")}.`,
        );
      this.#index.addColumn(name);
    }
  }

  /** @internal */
  override bind(rows: RowDirectory): void {
    super.bind(rows);
    this.#directory = rows;
  }

  /** @internal */
  override set(row: number, values: CheckedValues | undefined): void {
    super.set(row, values);
    if (values === undefined) return;
    const texts = this.get(row, this.#index.columns) as Record<string, IndexedText>;
    finish(this.#index.set(row, new Map(Object.entries(texts))));
    this.#compact();
  }

  /** @internal */
  override clear(row: number): void {
    super.clear(row);
    this.#hashes[row] = 0;
    this.#index.remove(row);
    this.#compact();
    const id = this.#lost.size === 0 ? undefined : this.#directory?.idOf(row);
    if (id !== undefined) for (const lost of this.#lost) if (!lost.has(row)) lost.set(row, id);
  }

  override get memoryBytes(): number {
    return super.memoryBytes + this.#index.memoryBytes + this.#hashes.byteLength;
  }

  /** @internal */
  override searchText(request: TextSearch, shard: VectorShard): TextSearchResult {
    return searchShard(request, this.#state(shard), shard);
  }

  /** @internal */
  override async searchTextHeld(request: TextSearch, vectors: HeldVectors): Promise<TextSearchResult> {
    const lost = new Map<number, string>();
    this.#lost.add(lost);
    try {
      return await searchHeld(request, this.#state(vectors, lost), vectors);
    } finally {
      this.#lost.delete(lost);
    }
  }

  #state(vectors: Pick<HeldVectors, "size" | "has">, lost: ReadonlyMap<number, string> = new Map()): RecordState {
    const rows = this.#directory!;
    const { capacity } = rows;
    const live = this.toMask({});
    const records = countBits(live);
    const having = vectors.size === records ? live : live.slice();
    if (having !== live) for (let row = 0; row < capacity; row++) if (!vectors.has(row)) clearBit(having, row);
    const idOf = (row: number): string => lost.get(row) ?? rows.idOf(row)!;
    return {
      columns: this,
      rows,
      capacity,
      live,
      records,
      names: this.#index.columns,
      view: this.#index.view(),
      vectorRows: () => having,
      idHashes: () => this.#idHashes(live),
      idOf,
      isBefore: (a, b) => (lost.size === 0 ? rows.isBefore(a, b) : compareText(idOf(a), idOf(b)) < 0),
    };
  }

  #idHashes(live: Uint32Array): Uint32Array {
    if (this.#hashes.length < 32 * live.length) this.#hashes = grown(this.#hashes, 64 * live.length);
    const hashes = this.#hashes;
    for (let row = 0; row < 32 * live.length; row++) {
      if (hashes[row] === 0 && hasBit(live, row)) hashes[row] = idHash(this.#directory!.idOf(row)!);
    }
    return hashes;
  }

  #compact(): void {
    if (this.#index.wantsCompaction) finish(this.#index.compact());
  }
}
