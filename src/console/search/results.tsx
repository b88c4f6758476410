/** What is nearest, best first, with scores as bars. */
import type { JSX } from "preact";
import type { Hit } from "./run-search.ts";
import { shortNumber } from "./terms.ts";
import { Bar } from "./terms-panel.tsx";

interface ResultsProps {
  title: string;
  /** The record that is the query, if it is one. */
  queryId: string | undefined;
  hits: readonly Hit[];
  said: string;
  /** A colour beside the name. */
  colorOf: (id: string) => string | undefined;
  chosen: string | undefined;
  onChoose: (id: string) => void;
  onMoreLike: (id: string) => void;
}

export function Results({ title, queryId, hits, said, colorOf, chosen, onChoose, onMoreLike }: ResultsProps): JSX.Element {
  // A query that finds itself would make all other bars too short to tell apart.
  const best = hits.find(({ id }) => id !== queryId)?.score ?? 1;
  return (
    <section class="card results" aria-label="Results">
      <h2>{title}</h2>
      <p class="muted small">{said}</p>
      <ol>
        {hits.map(({ id, score }, i) => (
          <li key={id} class={id === chosen ? "chosen" : ""}>
            <span class="rank">{i + 1}</span>
            <button type="button" class="result-name" aria-pressed={id === chosen} title="Why is it near?" onClick={() => onChoose(id)}>
              <Swatch color={colorOf(id)} />
              <bdi>{id}</bdi>
            </button>
            <Bar share={best === 0 ? 0 : score / best} />
            <span class="score" title={String(score)}>
              {shortNumber(score)}
            </span>
            <button
              type="button"
              class="quiet more-like"
              onClick={() => onMoreLike(id)}
              aria-label={`More like ${id}`}
              title="More like this"
            >
              ›
            </button>
          </li>
        ))}
      </ol>
      {hits.length === 0 && <p class="muted">Nothing was found.</p>}
    </section>
  );
}

/** An SVG, since its fill is an attribute, which the page's policy allows where it allows no style. */
function Swatch({ color }: { color: string | undefined }): JSX.Element | null {
  if (color === undefined) return null;
  return (
    <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="5.500" fill={color} />
    </svg>
  );
}
