/** A vector as a small picture: a bar for each dimension (or group of them), and its norm. */
import type { JSX } from "preact";
import { grouped, normOf, shortNumber } from "../search/terms.ts";

const MAX_BARS = 32;

export function VectorStrip({ vector }: { vector: readonly number[] }): JSX.Element {
  const bars = grouped(Float64Array.from(vector), MAX_BARS);
  const most = bars.reduce((top, { value }) => Math.max(top, Math.abs(value)), 0) || 1;
  const norm = shortNumber(normOf(vector));
  return (
    <span class="strip-cell">
      <svg
        class="vector-strip"
        viewBox={`0 0 ${bars.length * 3} 20`}
        preserveAspectRatio="none"
        role="img"
        aria-label={`${vector.length} dimensions, norm ${norm}`}
      >
        {bars.map(({ from, value }, i) => {
          const height = Math.max(0.5, (Math.abs(value) / most) * 10);
          return (
            <rect
              key={from}
              class={value < 0 ? "negative" : "positive"}
              x={i * 3 + 0.3}
              width="2.400"
              y={value < 0 ? 10 : 10 - height}
              height={height}
            />
          );
        })}
      </svg>
      <span class="muted" title="Norm">
        {norm}
      </span>
    </span>
  );
}
