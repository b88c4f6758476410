/** The results, and the parts of a score. */

import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { submitting, TextField, useAttempt } from "../parts/form.tsx";
import { Icon, Swatch } from "../parts/icons.tsx";
import { shortNumber } from "../parts/numbers.ts";
import { Explanation, Matches, rangeOf, ScoreBar } from "./explanation.tsx";
import type { Hit, SearchAnswer } from "./run-search.ts";
import { grouped, termsOf } from "./terms.ts";

interface ResultsProps {
  title: string;
  /** The record that is the query, if it is one. */
  queryId: string | undefined;
  hits: readonly Hit[];
  /** If they were found by words and vector. */
  fusion: SearchAnswer["fusion"];
  said: string;
  nameOf: (id: string) => string;
  /** Of the record's card. */
  hrefOfRecord: (id: string) => string;
  /** A colour beside the name. */
  colorOf: (id: string) => string | undefined;
  chosen: string | undefined;
  onChoose: (id: string) => void;
  /** undefined if there is nothing to measure nearness by. */
  onMoreLike: ((id: string) => void) | undefined;
}

/** The best records, best first, with scores as bars. */
export function Results({
  title,
  queryId,
  hits,
  fusion,
  said,
  nameOf,
  hrefOfRecord,
  colorOf,
  chosen,
  onChoose,
  onMoreLike,
}: ResultsProps): JSX.Element {
  const range = rangeOf(hits, fusion, queryId);
  return (
    <section class={`card results ${fusion === undefined ? "" : "of-both"}`} aria-label="Results">
      <h2>{title}</h2>
      <p class="muted small">{said}</p>
      {fusion !== undefined && (
        <p class="keys small" aria-hidden="true">
          <span class="key vector-part" /> vector <span class="key words-part" /> words
        </p>
      )}
      <ol>
        {hits.map((hit, i) => {
          const { id, score, explain, highlight } = hit;
          const color = colorOf(id);
          return (
            <li key={id} class={id === chosen ? "chosen" : ""}>
              <span class="rank">{i + 1}</span>
              <button
                type="button"
                class="result-name"
                aria-pressed={id === chosen}
                title={`Why was ${id} found?`}
                onClick={() => onChoose(id)}
              >
                {color !== undefined && <Swatch color={color} />}
                <bdi>{nameOf(id)}</bdi>
              </button>
              <ScoreBar hit={hit} fusion={fusion} range={range} />
              <span class="score" title={String(score)}>
                {shortNumber(score)}
              </span>
              <a class="open-card" href={hrefOfRecord(id)} aria-label={`Open ${id}`} title="Open the record">
                <Icon name="card" />
              </a>
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
              {highlight !== undefined && <Matches highlight={highlight} isWhole={id === chosen} />}
              {explain !== undefined && id === chosen && <Explanation explain={explain} fusion={fusion} />}
            </li>
          );
        })}
      </ol>
      {hits.length === 0 && <p class="muted">Nothing found.</p>}
    </section>
  );
}

interface TermsPanelProps {
  query: ArrayLike<number>;
  queryName: string;
  vector: ArrayLike<number>;
  vectorName: string;
  similarity: Similarity;
  /** Another record takes the place of the vector. @throws why it cannot. */
  onCompare: (id: string) => Promise<void>;
}

const MAX_BARS = 96;
/** Up to this many dimensions, each has a line of its own, with its numbers. */
const MAX_LINES = 8;

/** Explains the distance of two records: a bar for each dimension's part in the sum. */
export function TermsPanel({ query, queryName, vector, vectorName, similarity, onCompare }: TermsPanelProps): JSX.Element {
  const { terms, sum, score, formula } = termsOf(query, vector, similarity);
  const greatest = terms.reduce((most, term) => Math.max(most, Math.abs(term)), 0) || 1;
  const lines = Array.from(terms, (term, j) => ({ term, j }));
  const shown = lines.length <= MAX_LINES ? lines : lines.toSorted((a, b) => Math.abs(b.term) - Math.abs(a.term)).slice(0, MAX_LINES);
  return (
    <section class="card terms" aria-label="The terms of their distance">
      <h2>
        Why <bdi class="name">{vectorName}</bdi> is near <bdi class="name">{queryName}</bdi>
      </h2>
      <CompareForm onCompare={onCompare} />
      <p class="formula">
        score = {formula} = <strong>{shortNumber(score)}</strong>
        <span class="muted"> · Σ = {shortNumber(sum)}</span>
      </p>
      {terms.length > MAX_LINES && <Spectrum terms={terms} />}
      <table class="term-lines">
        <caption class={terms.length > MAX_LINES ? "" : "hidden"}>
          The {MAX_LINES} largest of {terms.length} terms
        </caption>
        <thead>
          <tr>
            <th scope="col">Dimension</th>
            <th scope="col" class="number">
              xᵢ
            </th>
            <th scope="col" class="number">
              yᵢ
            </th>
            <th scope="col" class="number">
              Term
            </th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {shown.map(({ term, j }) => (
            <tr key={j}>
              <th scope="row">{j}</th>
              <td class="number">{shortNumber(query[j]!)}</td>
              <td class="number">{shortNumber(vector[j]!)}</td>
              <td class="number">{shortNumber(term)}</td>
              <td>
                <Bar share={term / greatest} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** Any two records can be compared, not only those that were found. */
function CompareForm({ onCompare }: Pick<TermsPanelProps, "onCompare">): JSX.Element {
  const [id, setId] = useState("");
  const { fault, attempt } = useAttempt();
  return (
    <form class="compare" onSubmit={submitting(() => void attempt(() => onCompare(id.trim())))}>
      <TextField label="Compare with" fault={fault} list="record-ids" placeholder="id of any record" required value={id} onInput={setId} />
      <button type="submit">Compare</button>
    </form>
  );
}

/** A horizontal bar; what is below zero goes the other way, in another colour. */
function Bar({ share }: { share: number }): JSX.Element {
  const width = Math.max(0.5, Math.min(1, Math.abs(share)) * 100);
  return (
    <svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="track" width="100" height="8" rx="2" />
      <rect class={share < 0 ? "negative" : "positive"} width={width} height="8" rx="2" />
    </svg>
  );
}

function Spectrum({ terms }: { terms: Float64Array }): JSX.Element {
  const bars = grouped(terms, MAX_BARS);
  const most = bars.reduce((top, { value }) => Math.max(top, Math.abs(value)), 0) || 1;
  const hasNegative = bars.some(({ value }) => value < 0);
  const zero = hasNegative ? 30 : 60;
  // Two elements for all bars: they are rendered again in each frame in which the pointer moves over the map.
  const barsOf = (part: (value: number) => number): string =>
    bars.map(({ value }, i) => `M${i * 4 + 0.5} ${zero}h3v${((-part(value) / most) * zero).toFixed(2)}h-3z`).join("");
  return (
    <svg
      class="spectrum"
      viewBox={`0 0 ${bars.length * 4} 60`}
      preserveAspectRatio="none"
      role="img"
      aria-label={`The terms of ${terms.length} dimensions, in order`}
    >
      <path class="positive" d={barsOf((value) => Math.max(0, value))} />
      <path class="negative" d={barsOf((value) => Math.min(0, value))} />
    </svg>
  );
}
