/** What the map does not show, and why; and how far it is with what was asked for, with a button that ends it. */
import type { JSX } from "preact";
import { rowBytes } from "../map/map-memory.ts";
import type { Plane } from "../map/messages.ts";
import { sizeInWords } from "../parts/numbers.ts";
import type { Progress } from "./shown-map.ts";

interface RestLineProps {
  plane: Plane;
  dimension: number;
  all: number;
  sampled: number;
  fitting: number;
  progress: Progress | undefined;
  onLoad: (rows: number) => void;
  onStop: () => void;
}

export function RestLine({ plane, dimension, all, sampled, fitting, progress, onLoad, onStop }: RestLineProps): JSX.Element | null {
  const count = plane.colors.length;
  if (progress !== undefined) {
    return (
      <div class="map-rest small">
        <Loading {...progress} />
        <button type="button" onClick={onStop}>
          Stop
        </button>
      </div>
    );
  }
  if (all <= count) return null;
  const some = count === sampled ? "A sample" : "Shown";
  const next = Math.min(all, fitting);
  return (
    <div class="map-rest small">
      <span>
        {some}: {inWords(count)} of {inWords(all)}. {roomFor(all, fitting, dimension)}
      </span>
      {next > count && (
        <button type="button" onClick={() => onLoad(next)}>
          {next === all ? "Load all" : `Load ${inWords(next)}`}
        </button>
      )}
    </div>
  );
}

function roomFor(all: number, fitting: number, dimension: number): string {
  const needed = sizeInWords(all * rowBytes(dimension));
  if (all <= fitting) return `All take ${needed} of this page's memory.`;
  return `All would take ${needed} of memory, and this page has ${sizeInWords(fitting * rowBytes(dimension))} for them. A filter shows others.`;
}

const inWords = (count: number): string => count.toLocaleString("en");

export function Loading({ rows, of }: Progress): JSX.Element {
  return (
    <div class="loading" role="status">
      <p>{of === 0 ? "Counting …" : `Loading ${inWords(rows)} of ${inWords(of)} vectors …`}</p>
      <progress max={Math.max(1, of)} value={rows} aria-label="Vectors loaded" />
    </div>
  );
}

/** @param share  of the work that is done, 0 to 1. */
export function LayoutLine({ share, onStop }: { share: number; onStop: () => void }): JSX.Element {
  return (
    <div class="map-rest small">
      <div class="loading" role="status">
        <p>Arranging neighbours: {Math.round(share * 100)} %</p>
        <progress value={share} aria-label="Layout" />
      </div>
      <button type="button" onClick={onStop}>
        Stop
      </button>
    </div>
  );
}
