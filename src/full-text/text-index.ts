/**
 * An inverted index over the text columns of one table: for each word and column, the records that have it and how
 * often. Every number that a score needs (records, lengths, document frequencies) is exact at any moment: a removed
 * record is marked, and postings of marked records are not counted.
 *
 * A record is a document, with a number of its own that no other document ever gets: a changed record is a new
 * document. When a third of all documents are marked, the index is compacted.
 *
 * Memory: 2 to 3 bytes for each different word of a record, about 100 for each word of the table, 4 for each
 * record and column.
 */
import { LodestoneError } from "../errors/lodestone-error.ts";
import { clearBit, hasBit, maskWords, setBit } from "../filter/bit-mask.ts";
import { grown, PostingLists, type Postings } from "./posting-lists.ts";
import { letterSet, type Stemmer } from "./terms.ts";
import { visitWords } from "./words.ts";

/** A text, the texts of a list, or none. */
export type IndexedText = string | readonly (string | null)[] | null;

const NONE = -1;
/** As many entries as a Map can have. */
const MAX_WORDS = 16_777_215;
/** Compaction pays from this many marked documents on. */
const LEAST_GARBAGE = 1_024;
const BYTES_PER_WORD = 96;
/** V8 keeps a slice of this length or more as a reference into the text that it was cut from. */
const SLICED_LENGTH = 13;

/** What is known of one column. */
class IndexedColumn {
  /** By word: its posting list. */
  lists = new Int32Array(0);
  /** By document: its words. */
  lengths = new Uint32Array(0);
  /** Of all documents that are not marked. */
  totalLength = 0;
  documents = 0;

  get memoryBytes(): number {
    return this.lists.byteLength + this.lengths.byteLength;
  }
}

/** Everything that compaction makes anew. */
class Segment {
  readonly words: string[] = [];
  readonly ids = new Map<string, number>();
  letters = new Int32Array(1024);
  characters = 0;
  readonly postings = new PostingLists();
  /** By stemmer: the words of each stem, of the first `until` words. Made when the first search needs it. */
  readonly stems = new Map<Stemmer, { readonly words: Map<string, number[]>; until: number }>();
  readonly columns = new Map<string, IndexedColumn>();
  /** By document. */
  rows = new Uint32Array(0);
  live = new Uint32Array(0);
  documents = 0;

  wordOf(word: string): number {
    const known = this.ids.get(word);
    if (known !== undefined) return known;
    // Or the whole text would stay in memory for a word of it.
    const own = word.length < SLICED_LENGTH ? word : word.split("").join("");
    const id = this.words.length;
    if (id === MAX_WORDS) throw new LodestoneError("OUT_OF_MEMORY", `The texts of one table have more than ${MAX_WORDS} different words.`);
    this.words.push(own);
    this.ids.set(own, id);
    if (id >= this.letters.length) {
      const next = new Int32Array(2 * this.letters.length);
      next.set(this.letters);
      this.letters = next;
    }
    this.letters[id] = letterSet(own);
    this.characters += own.length;
    return id;
  }

  append(column: IndexedColumn, word: number, document: number, frequency: number): void {
    if (word >= column.lists.length) {
      const next = new Int32Array(Math.max(1024, 2 * column.lists.length, word + 1)).fill(NONE, column.lists.length);
      next.set(column.lists);
      column.lists = next;
    }
    let list = column.lists[word]!;
    if (list === NONE) {
      list = this.postings.create();
      column.lists[word] = list;
    }
    this.postings.append(list, document, frequency);
  }

  reserve(documents: number): void {
    if (documents <= this.rows.length) return;
    const length = Math.max(1024, 2 * this.rows.length, documents);
    this.rows = grown(this.rows, length);
    this.live = grown(this.live, maskWords(length));
    for (const column of this.columns.values()) column.lengths = grown(column.lengths, length);
  }
}

export class TextIndex {
  #segment = new Segment();
  /** By row: its document. */
  #documents = new Int32Array(0);
  #marked = 0;
  // Of the text that is being read: how often it has each word, and which it has.
  #frequencies = new Uint32Array(1024);
  readonly #found: number[] = [];
  /** The row that is being written; undefined when it has been removed meanwhile. */
  #writing: number | undefined;
  /** Documents that were removed while the index was compacted. */
  #removedMeanwhile: number[] | undefined;

  get columns(): readonly string[] {
    return [...this.#segment.columns.keys()];
  }

  has(column: string): boolean {
    return this.#segment.columns.has(column);
  }

  get memoryBytes(): number {
    const { words, characters, letters, postings, columns, rows, live, stems } = this.#segment;
    let bytes = BYTES_PER_WORD * words.length + characters + letters.byteLength + postings.memoryBytes + rows.byteLength + live.byteLength;
    for (const column of columns.values()) bytes += column.memoryBytes;
    for (const { until } of stems.values()) bytes += BYTES_PER_WORD * until;
    return bytes + this.#documents.byteLength + this.#frequencies.byteLength;
  }

  addColumn(name: string): void {
    this.#interrupt();
    const column = new IndexedColumn();
    this.#segment.columns.set(name, column);
    column.lengths = new Uint32Array(this.#segment.rows.length);
  }

  /** Renames columns (old name to new). Those that are not named are removed; what they had is reclaimed by compaction. */
  keepColumns(names: ReadonlyMap<string, string>): void {
    this.#interrupt();
    const before = [...this.#segment.columns];
    this.#segment.columns.clear();
    for (const [name, column] of before) {
      const to = names.get(name);
      if (to !== undefined) this.#segment.columns.set(to, column);
    }
  }

  /**
   * Writes the texts of a row, by column; what it had before is removed. Call the generator to its end before the
   * next one; rows may be removed meanwhile, this one too. Searches see none of it before the end. Yields the
   * characters read since the last time.
   */
  *set(row: number, texts: ReadonlyMap<string, IndexedText>): Generator<number, void, undefined> {
    this.remove(row);
    this.#writing = row;
    const segment = this.#segment;
    const document = segment.documents;
    segment.reserve(document + 1);
    const lengths: [IndexedColumn, number][] = [];
    const count = (word: string): void => {
      const id = segment.wordOf(word);
      if (id >= this.#frequencies.length) this.#frequencies = grown(this.#frequencies, 2 * id);
      if (this.#frequencies[id]!++ === 0) this.#found.push(id);
    };
    for (const [name, text] of texts) {
      const column = segment.columns.get(name);
      if (column === undefined || text === null) continue;
      for (const item of typeof text === "string" ? [text] : text) if (item !== null) yield* visitWords(item, count);
      let length = 0;
      for (const word of this.#found) {
        const frequency = this.#frequencies[word]!;
        this.#frequencies[word] = 0;
        length += frequency;
        segment.append(column, word, document, frequency);
      }
      this.#found.length = 0;
      if (length > 0) lengths.push([column, length]);
    }
    if (lengths.length === 0) return;
    // The number is taken: there are postings with it.
    segment.documents++;
    if (this.#writing !== row) {
      this.#marked++;
      return;
    }
    this.#writing = undefined;
    for (const [column, length] of lengths) {
      column.lengths[document] = length;
      column.totalLength += length;
      column.documents++;
    }
    if (row >= this.#documents.length) {
      const next = new Int32Array(Math.max(1024, 2 * this.#documents.length, row + 1)).fill(NONE, this.#documents.length);
      next.set(this.#documents);
      this.#documents = next;
    }
    this.#documents[row] = document;
    segment.rows[document] = row;
    setBit(segment.live, document);
  }

  remove(row: number): void {
    if (this.#writing === row) this.#writing = undefined;
    const document = this.#documents[row] ?? NONE;
    if (document === NONE) return;
    this.#documents[row] = NONE;
    const { columns, live } = this.#segment;
    clearBit(live, document);
    for (const column of columns.values()) {
      const length = column.lengths[document]!;
      if (length === 0) continue;
      column.totalLength -= length;
      column.documents--;
    }
    this.#marked++;
    this.#removedMeanwhile?.push(document);
  }

  /** A row that is being written is not; set it again. */
  #interrupt(): void {
    this.#writing = undefined;
    this.#removedMeanwhile = undefined;
  }

  get wantsCompaction(): boolean {
    return this.#marked >= LEAST_GARBAGE && 3 * this.#marked >= this.#segment.documents;
  }

  /**
   * Leaves out the marked documents, and words that no other has. Rows may be removed meanwhile, but none set. Yields
   * the postings copied since the last time.
   */
  *compact(): Generator<number, void, undefined> {
    const before = this.#segment;
    const segment = new Segment();
    const live = before.live.slice();
    const removed: number[] = [];
    this.#removedMeanwhile = removed;
    const numbers = new Uint32Array(before.documents);
    segment.reserve(before.documents - this.#marked);
    for (let document = 0; document < before.documents; document++) {
      if (!hasBit(live, document)) continue;
      numbers[document] = segment.documents;
      segment.rows[segment.documents] = before.rows[document]!;
      setBit(segment.live, segment.documents++);
    }
    const totals = [...before.columns].map(([name, { totalLength, documents }]) => [name, totalLength, documents] as const);
    for (const [name, totalLength, documents] of totals) {
      const { lists, lengths } = before.columns.get(name)!;
      const column = new IndexedColumn();
      column.lengths = new Uint32Array(segment.rows.length);
      column.totalLength = totalLength;
      column.documents = documents;
      for (let document = 0; document < before.documents; document++) {
        if (hasBit(live, document)) column.lengths[numbers[document]!] = lengths[document]!;
      }
      for (let word = 0; word < before.words.length; word++) {
        const list = lists[word] ?? NONE;
        if (list === NONE) continue;
        const { count, documents: found, frequencies } = before.postings.read(list, before.documents);
        let id = NONE;
        for (let i = 0; i < count; i++) {
          if (!hasBit(live, found[i]!)) continue;
          if (id === NONE) id = segment.wordOf(before.words[word]!);
          segment.append(column, id, numbers[found[i]!]!, frequencies[i]!);
        }
        yield count;
        // The columns have changed. It will be asked for again.
        if (this.#removedMeanwhile !== removed) return;
      }
      segment.columns.set(name, column);
    }
    this.#documents.fill(NONE);
    for (let document = 0; document < segment.documents; document++) this.#documents[segment.rows[document]!] = document;
    this.#removedMeanwhile = undefined;
    this.#segment = segment;
    this.#marked = 0;
    for (const document of removed) this.remove(segment.rows[numbers[document]!]!);
  }

  /** The index as it is now, for a search that takes several steps. Whatever is written meanwhile, it stays as it is. */
  view(): TextView {
    return new TextView(this.#segment);
  }
}

/** What a search reads. Costs a bit for each document. */
export class TextView {
  readonly #segment: Segment;
  /** Documents are below this. */
  readonly end: number;
  readonly #live: Uint32Array;
  readonly #columns: ReadonlyMap<string, { readonly column: IndexedColumn; readonly averageLength: number }>;

  constructor(segment: Segment) {
    this.#segment = segment;
    this.end = segment.documents;
    this.#live = segment.live.slice(0, maskWords(this.end));
    this.#columns = new Map(
      [...segment.columns].map(([name, column]) => {
        const { totalLength, documents } = column;
        return [name, { column, averageLength: documents === 0 ? 1 : totalLength / documents }];
      }),
    );
  }

  isLive(document: number): boolean {
    return hasBit(this.#live, document);
  }

  /** The row of a document that is not marked. */
  rowOf(document: number): number {
    return this.#segment.rows[document]!;
  }

  wordId(word: string): number | undefined {
    return this.#segment.ids.get(word);
  }

  wordAt(id: number): string {
    return this.#segment.words[id]!;
  }

  /** The words that have the stem. Yields the words stemmed since the last time. */
  *wordsOfStem(stem: string, stemmer: Stemmer): Generator<number, readonly number[], undefined> {
    const segment = this.#segment;
    let known = segment.stems.get(stemmer);
    if (known === undefined) {
      known = { words: new Map(), until: 0 };
      segment.stems.set(stemmer, known);
    }
    while (known.until < segment.words.length) {
      const word = known.until++;
      const found = stemmer(segment.words[word]!);
      const same = known.words.get(found);
      if (same === undefined) known.words.set(found, [word]);
      else same.push(word);
      yield 1;
    }
    return known.words.get(stem) ?? [];
  }

  /** By word: `letterSet`. */
  get letters(): Int32Array {
    return this.#segment.letters;
  }

  /** How many different words there are, of removed records too. */
  get wordCount(): number {
    return this.#segment.words.length;
  }

  /** Postings of the word in the column, those of marked documents included: no fewer than records that have it. */
  postingCount(column: string, word: number): number {
    const list = this.#columns.get(column)?.column.lists[word] ?? NONE;
    return list === NONE ? 0 : this.#segment.postings.count(list);
  }

  /** Those of marked documents included. undefined: the column does not have the word. Valid until the next call. */
  postings(column: string, word: number): Postings | undefined {
    const list = this.#columns.get(column)?.column.lists[word] ?? NONE;
    return list === NONE ? undefined : this.#segment.postings.read(list, this.end);
  }

  /** By document: how many words it has in the column. */
  lengths(column: string): Uint32Array {
    return this.#columns.get(column)!.column.lengths;
  }

  /** Words of an average record, among those that have any in the column. */
  averageLength(column: string): number {
    return this.#columns.get(column)!.averageLength;
  }
}
