/**
 * The driver's connection below its client: the messages of PostgreSQL's protocol ("Message Formats" in its
 * documentation). `pg` gives every client one, and documents neither its methods nor its events.
 *
 * `handleLongTexts` takes two kinds of messages out of the driver's hands: a bind with an EncodedText is sent in
 * pieces, and a long row reaches the driver with its values undecoded. All other bytes pass unchanged.
 */
import { EventEmitter } from "node:events";
import type { Duplex } from "node:stream";
import type pg from "pg";
import { EncodedText, UndecodedText } from "./long-texts.ts";

export interface BindConfig {
  readonly portal?: string;
  readonly statement?: string;
  readonly values: readonly unknown[];
  /** The format of the answer. */
  readonly binary?: boolean;
  readonly valueMapper: (value: unknown) => unknown;
}

export interface ProtocolConnection extends EventEmitter {
  readonly stream: Duplex;
  parse(query: { name: string; text: string; types: number[] }, more?: boolean): void;
  describe(message: { type: "S" | "P"; name: string }, more?: boolean): void;
  bind(config: BindConfig): void;
  /** 0 in `rows` means all. */
  execute(config: { portal: string; rows: number }, more?: boolean): void;
  sync(): void;
  /** Text without parameters. */
  query(text: string): void;
  /** Begins to read messages from the stream, and emits each. */
  attachListeners(stream: EventEmitter): void;
}

export const connectionOf = (client: pg.ClientBase): ProtocolConnection =>
  (client as unknown as { connection: ProtocolConnection }).connection;

/** Long rows that have arrived, by their connection. */
const longRows = new WeakMap<ProtocolConnection, number>();

/** How many long rows have arrived so far. */
export const longRowsOf = (client: pg.ClientBase): number => longRows.get(connectionOf(client)) ?? 0;

/** @param client  not connected yet. */
export function handleLongTexts(client: pg.ClientBase): void {
  const connection = connectionOf(client);
  const bind = connection.bind.bind(connection);
  connection.bind = (config) => {
    if (!config.values.some((value) => value instanceof EncodedText)) return bind(config);
    const { stream } = connection;
    if (!stream.writable) return;
    stream.cork();
    for (const part of bindMessage(config)) stream.write(part);
    stream.uncork();
  };
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const rest = new EventEmitter();
    attach(rest);
    const split = new LongRowSplit(
      (bytes) => rest.emit("data", bytes),
      (row) => {
        longRows.set(connection, (longRows.get(connection) ?? 0) + 1);
        const fields = fieldsOf(row);
        connection.emit("dataRow", { name: "dataRow", length: row.length + LENGTH_BYTES, fieldCount: fields.length, fields });
      },
    );
    stream.on("data", (bytes: Buffer) => split.push(bytes));
    stream.on("end", () => rest.emit("end"));
  };
}

const BIND = "B";
const DATA_ROW = 0x44;
/** Of a message, behind its kind. It counts itself and what follows. */
const LENGTH_BYTES = 4;
const HEADER_BYTES = 1 + LENGTH_BYTES;
/** From this many bytes on a row is long. */
const LONG_ROW = 1 << 18;
const TEXT_FORMAT = 0;
const BINARY_FORMAT = 1;
const NULL_LENGTH = -1;

function bindMessage({ portal = "", statement = "", values, binary = false, valueMapper }: BindConfig): Buffer[] {
  const formats: number[] = [];
  const parts: Buffer[] = [];
  for (const value of values) {
    const sent = value instanceof EncodedText ? value : valueMapper(value);
    formats.push(sent instanceof Buffer ? BINARY_FORMAT : TEXT_FORMAT);
    if (sent === null) parts.push(int32(NULL_LENGTH));
    else if (sent instanceof EncodedText) parts.push(int32(sent.byteLength), ...sent.pieces);
    else {
      const bytes = sent instanceof Buffer ? sent : Buffer.from(sent as string, "utf8");
      parts.push(int32(bytes.length), bytes);
    }
  }
  const head = [Buffer.from(`${portal}\0${statement}\0`, "utf8"), int16s(formats.length, ...formats), int16s(values.length)];
  const body = [...head, ...parts, int16s(1, binary ? BINARY_FORMAT : TEXT_FORMAT)];
  const length = body.reduce((sum, part) => sum + part.length, LENGTH_BYTES);
  return [Buffer.from(BIND), int32(length), ...body];
}

function int32(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return bytes;
}

function int16s(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length);
  numbers.forEach((number, i) => void bytes.writeUInt16BE(number, 2 * i));
  return bytes;
}

/** The values of a data row: null, or undecoded. */
function fieldsOf(row: Buffer): (UndecodedText | null)[] {
  const fields: (UndecodedText | null)[] = [];
  let at = 2;
  for (let left = row.readUInt16BE(0); left > 0; left--) {
    const length = row.readInt32BE(at);
    at += 4;
    fields.push(length === NULL_LENGTH ? null : new UndecodedText(row.subarray(at, at + length)));
    at += Math.max(length, 0);
  }
  return fields;
}

/** Cuts the stream of messages into long data rows and all the rest, in their order. */
export class LongRowSplit {
  readonly #onRest: (bytes: Buffer) => void;
  readonly #onRow: (row: Buffer) => void;
  /** The begin of a header that has not arrived in full. */
  #header: Buffer = Buffer.alloc(0);
  /** Bytes that are still to come of a message that is passed on. */
  #passing = 0;
  /** Of a long row: what has arrived of it, and how many bytes are to come. */
  #row: Buffer[] = [];
  #rowLeft = 0;

  /**
   * @param onRest  whole headers, and as much of their messages as has arrived.
   * @param onRow  a long row, without its header.
   */
  constructor(onRest: (bytes: Buffer) => void, onRow: (row: Buffer) => void) {
    this.#onRest = onRest;
    this.#onRow = onRow;
  }

  push(arrived: Buffer): void {
    const bytes = this.#header.length === 0 ? arrived : Buffer.concat([this.#header, arrived]);
    this.#header = Buffer.alloc(0);
    /** Where the bytes begin that are not passed on yet. */
    let from = 0;
    let at = 0;
    const passOn = (): void => {
      if (at > from) this.#onRest(bytes.subarray(from, at));
    };
    while (at < bytes.length) {
      if (this.#rowLeft > 0) {
        const end = Math.min(at + this.#rowLeft, bytes.length);
        this.#row.push(bytes.subarray(at, end));
        this.#rowLeft -= end - at;
        at = from = end;
        if (this.#rowLeft === 0) this.#onRow(Buffer.concat(this.#row.splice(0)));
      } else if (this.#passing > 0) {
        const end = Math.min(at + this.#passing, bytes.length);
        this.#passing -= end - at;
        at = end;
      } else if (bytes.length - at < HEADER_BYTES) {
        this.#header = bytes.subarray(at);
        break;
      } else {
        const length = bytes.readUInt32BE(at + 1);
        if (bytes[at] === DATA_ROW && length > LONG_ROW) {
          passOn();
          at = from = at + HEADER_BYTES;
          this.#rowLeft = length - LENGTH_BYTES;
        } else this.#passing = 1 + length;
      }
    }
    passOn();
  }
}

// Queries of our own for a `pg` client, which sends and receives the messages of the protocol for them.

/** The methods that a `pg` client calls on the query it runs. */
export abstract class Submittable<Result> {
  readonly done: Promise<Result>;
  protected resolve!: (result: Result) => void;
  protected reject!: (error: Error) => void;
  /** pg replaces a missing callback; our promise takes its place. */
  callback = (): void => {};

  constructor() {
    this.done = new Promise((resolve, reject) => {
      this.resolve = resolve;
      this.reject = reject;
    });
  }

  submit(connection: ProtocolConnection): Error | null {
    connection.stream.cork();
    try {
      this.send(connection);
    } finally {
      connection.stream.uncork();
    }
    return null;
  }

  protected abstract send(connection: ProtocolConnection): void;
  abstract handleReadyForQuery(connection: ProtocolConnection): void;

  handleError(error: Error, _connection: ProtocolConnection): void {
    this.reject(error);
  }
  handleRowDescription(_message: unknown): void {}
  handleDataRow(_message: unknown): void {}
  handleCommandComplete(_message: unknown, _connection: ProtocolConnection): void {}
  handlePortalSuspended(_connection: ProtocolConnection): void {}
  handleEmptyQuery(_connection: ProtocolConnection): void {}
  handleCopyInResponse(_connection: ProtocolConnection): void {}
  handleCopyData(_message: unknown, _connection: ProtocolConnection): void {}
}

/** Runs the query once those before it on the client have ended. */
export function submit<Result>(client: pg.ClientBase, query: Submittable<Result>): Promise<Result> {
  client.query(query as unknown as pg.Submittable);
  return query.done;
}
