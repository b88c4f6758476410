/** How a table's columns are laid out, kept in this browser: which are hidden, their order, and their widths. */
import { useState } from "preact/hooks";
import type { ColumnSchema } from "../state/server-content.ts";

const LEAST_WIDTH = 60;
const MOST_WIDTH = 1_200;

interface Kept {
  /** Names in their order; columns that are not among them follow. */
  readonly order: readonly string[];
  /** CSS pixels, of the columns whose width was changed. */
  readonly widths: Readonly<Record<string, number>>;
}

export interface ColumnLayout {
  /** In their order. */
  readonly columns: readonly ColumnSchema[];
  /** undefined: as the type has it. */
  widthOf(name: string): number | undefined;
  /** @param width  undefined: as the type has it. */
  resize(name: string, width: number | undefined): void;
  /** @param place  among all columns, from 0. */
  move(name: string, place: number): void;
}

/** @param path  of the table. */
export function useColumnLayout(path: string, columns: readonly ColumnSchema[]): ColumnLayout {
  const [kept, setKept] = useState(() => read(path));
  function keep(next: Kept): void {
    setKept(next);
    if (next.order.length === 0 && Object.keys(next.widths).length === 0) localStorage.removeItem(layoutKey(path));
    else localStorage.setItem(layoutKey(path), JSON.stringify(next));
  }
  const place = ({ name }: ColumnSchema): number => (kept.order.includes(name) ? kept.order.indexOf(name) : kept.order.length);
  const ordered = columns.toSorted((a, b) => place(a) - place(b));
  return {
    columns: ordered,
    widthOf: (name) => kept.widths[name],
    resize(name, width) {
      const { [name]: _, ...others } = kept.widths;
      keep({ ...kept, widths: width === undefined ? others : { ...others, [name]: Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, width)) } });
    },
    move(name, to) {
      const order = ordered.map((column) => column.name).filter((other) => other !== name);
      keep({ ...kept, order: order.toSpliced(Math.max(0, to), 0, name) });
    },
  };
}

const layoutKey = (path: string): string => `lodestone.layout ${path}`;
const hiddenKey = (path: string): string => `lodestone.hidden ${path}`;

function read(path: string): Kept {
  const kept = stored(layoutKey(path));
  if (typeof kept !== "object" || kept === null || Array.isArray(kept)) return { order: [], widths: {} };
  const { order, widths } = kept as { order?: unknown; widths?: unknown };
  return {
    order: Array.isArray(order) ? order.map(String) : [],
    widths: Object.fromEntries(Object.entries(widths ?? {}).filter(([, width]) => typeof width === "number")) as Kept["widths"],
  };
}

export function hiddenColumns(path: string): ReadonlySet<string> {
  const kept = stored(hiddenKey(path));
  return new Set(Array.isArray(kept) ? kept.map(String) : []);
}

export function keepHiddenColumns(path: string, hidden: ReadonlySet<string>): void {
  if (hidden.size === 0) localStorage.removeItem(hiddenKey(path));
  else localStorage.setItem(hiddenKey(path), JSON.stringify([...hidden]));
}

/** undefined if it is no JSON. */
function stored(key: string): unknown {
  try {
    return JSON.parse(localStorage.getItem(key) ?? "null");
  } catch {
    return undefined;
  }
}
