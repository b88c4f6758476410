/** What is nearest to the pointer on the map, as often as those who read it can take it. */
import { type ReadonlySignal, useSignal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Marks } from "../map/marks.ts";
import type { Nearest } from "../map/vector-map.ts";

const LIST_MS = 80;

interface Pointed {
  /** Of the latest answer; undefined when the pointer is elsewhere. */
  readonly pointed: ReadonlySignal<Marks | undefined>;
  /** The same, updated as often as the list. */
  readonly hovered: Nearest | undefined;
  readonly setHovered: (nearest: Nearest | undefined) => void;
}

/**
 * The records nearest to the pointer on the map. The map draws every answer. The list and the terms, which are many
 * elements and are read by people, take one answer per LIST_MS, and always the last. So a frame costs two canvases.
 */
export function usePointed(): Pointed {
  const pointed = useSignal<Marks | undefined>(undefined);
  const [hovered, show] = useState<Nearest | undefined>(undefined);
  const paced = useMemo(() => new PacedValue(show), []);
  useEffect(() => () => paced.stop(), []);
  return {
    pointed,
    hovered,
    setHovered(nearest) {
      pointed.value = nearest && { neighbors: nearest.neighbors, from: nearest, highlighted: nearestOther(nearest) };
      paced.take(nearest);
    },
  };
}

/** The record under the pointer, if there is one. */
export const pointedRecord = ({ source }: Nearest): string | undefined => (source.from === "record" ? source.id : undefined);

/** The nearest that is not the record under the pointer itself. */
export const nearestOther = (nearest: Nearest): string | undefined => nearest.neighbors.find(({ id }) => id !== pointedRecord(nearest))?.id;

/** Passes values on: the first at once, then at most one in LIST_MS, and none (undefined) at once. */
class PacedValue {
  readonly #show: (value: Nearest | undefined) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: Nearest | undefined;

  constructor(show: (value: Nearest | undefined) => void) {
    this.#show = show;
  }

  take(value: Nearest | undefined): void {
    if (value !== undefined && this.#timer !== undefined) {
      this.#waiting = value;
      return;
    }
    this.stop();
    this.#show(value);
    if (value !== undefined) this.#timer = setTimeout(() => this.#goOn(), LIST_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#waiting = undefined;
  }

  #goOn(): void {
    this.#timer = undefined;
    if (this.#waiting !== undefined) this.take(this.#waiting);
  }
}
