/** The nearest records, best first, with scores as bars. */
import type { JSX } from "preact";
import type { Fused, Part, Ranked } from "./fuse.ts";
import { shortNumber } from "./terms.ts";
import { Bar } from "./terms-panel.tsx";

interface ResultsProps {
  title: string;
  /** The record that is the query, if it is one. */
  queryId: string | undefined;
  hits: readonly (Ranked | Fused)[];
  said: string;
  /** A colour beside the name. */
  colorOf: (id: string) => string | undefined;
  chosen: string | undefined;
  onChoose: (id: string) => void;
  /** undefined if there is nothing to measure nearness by. */
  onMoreLike: ((id: string) => void) | undefined;
}

export function Results({ title, queryId, hits, said, colorOf, chosen, onChoose, onMoreLike }: ResultsProps): JSX.Element {
  // A query that finds itself would make all other bars too short to compare.
  const best = hits.find(({ id }) => id !== queryId)?.score ?? 1;
  return (
    <section class="card results" aria-label="Results">
      <h2>{title}</h2>
      <p class="muted small">{said}</p>
      <ol>
        {hits.map((hit, i) => {
          const { id, score } = hit;
          return (
            <li key={id} class={id === chosen ? "chosen" : ""}>
              <span class="rank">{i + 1}</span>
              <button type="button" class="result-name" aria-pressed={id === chosen} title="Why is it near?" onClick={() => onChoose(id)}>
                <Swatch color={colorOf(id)} />
                <bdi>{id}</bdi>
              </button>
              {isFused(hit) ? <PartsBar hit={hit} best={best} /> : <Bar share={best === 0 ? 0 : score / best} />}
              <span class="score" title={isFused(hit) ? partsSaid(hit) : String(score)}>
                {shortNumber(score)}
              </span>
              {onMoreLike !== undefined && (
                <button
                  type="button"
                  class="quiet more-like"
                  onClick={() => onMoreLike(id)}
                  aria-label={`More like ${id}`}
                  title="More like this"
                >
                  ›
                </button>
              )}
              {isFused(hit) && <p class="parts muted small">{partsSaid(hit)}</p>}
            </li>
          );
        })}
      </ol>
      {hits.length === 0 && <p class="muted">Nothing was found.</p>}
    </section>
  );
}

/** An SVG, because its fill is an attribute: the page's policy allows that, but no inline style. */
function Swatch({ color }: { color: string | undefined }): JSX.Element | null {
  if (color === undefined) return null;
  return (
    <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="5.500" fill={color} />
    </svg>
  );
}

const isFused = (hit: Ranked | Fused): hit is Fused => "nearness" in hit;

const partSaid = (name: string, part: Part | undefined): string =>
  part === undefined ? `not by ${name}` : `${name}: place ${part.rank}, ${shortNumber(part.score)}`;

const partsSaid = ({ nearness, words }: Fused): string => `${partSaid("nearness", nearness)} · ${partSaid("words", words)}`;

/** The contributions of both rankings, one after the other. */
function PartsBar({ hit, best }: { hit: Fused; best: number }): JSX.Element {
  const width = (part: Part | undefined): number => ((part?.contribution ?? 0) / best) * 100;
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={partsSaid(hit)}>
      <rect class="track" width="100" height="8" rx="2" />
      <rect class="positive" width={width(hit.nearness)} height="8" />
      <rect class="words-part" x={width(hit.nearness)} width={width(hit.words)} height="8" />
    </svg>
  );
}
