/** What made the score of a record that words found: the bar, the texts in which they are, and the parts in numbers. */
import { Fragment, type JSX } from "preact";
import type { TextExplanation } from "../../search/text/search-texts.ts";
import { counted, shortNumber } from "../parts/numbers.ts";
import { type Hit, markedPieces, type SearchAnswer } from "./run-search.ts";

/** What the bars of a list can show: from the least to the most, and where they begin. */
export interface BarRange {
  readonly low: number;
  readonly high: number;
  readonly base: number;
}

/** Of the whole width: the bar of the lowest score. */
const LEAST_SHARE = 0.06;

type Half = "vector" | "words";
type Parts = readonly (readonly [half: Half, value: number])[];

/** What the halves of a search add; one of them is all of it if only that was asked for. */
function partsOf({ score, explain }: Hit, fusion: SearchAnswer["fusion"]): Parts {
  if (fusion === undefined) return [[explain === undefined ? "vector" : "words", score]];
  return [
    ["vector", explain?.vector?.contribution ?? 0],
    ["words", explain?.text?.contribution ?? 0],
  ];
}

/**
 * Scores of one half: from the lowest to the highest that is shown, because their differences matter. The parts of two halves: from zero.
 * @param queryId  a record that finds itself would make all other bars too short to compare.
 */
export function rangeOf(hits: readonly Hit[], fusion: SearchAnswer["fusion"], queryId: string | undefined): BarRange {
  const others = hits.filter(({ id }) => id !== queryId || hits.length === 1);
  if (fusion === undefined) {
    const scores = others.map(({ score }) => score);
    const [least, most] = [Math.min(...scores), Math.max(...scores)];
    const base = least - ((most - least) * LEAST_SHARE) / (1 - LEAST_SHARE) - (most === least ? 1 : 0);
    return { low: base, high: most, base };
  }
  const sums = others.map((hit) => partsOf(hit, fusion));
  const sum = (parts: Parts, sign: number): number => parts.reduce((total, [, value]) => total + Math.max(0, sign * value), 0);
  const high = Math.max(0, ...sums.map((parts) => sum(parts, 1)));
  const low = -Math.max(0, ...sums.map((parts) => sum(parts, -1)));
  return { low, high: high === low ? 1 : high, base: 0 };
}

/** The score, or what each half adds, from zero: one after the other, and to the left what is below. */
export function ScoreBar({ hit, fusion, range }: { hit: Hit; fusion: SearchAnswer["fusion"]; range: BarRange }): JSX.Element {
  const parts = partsOf(hit, fusion);
  const scale = 100 / (range.high - range.low);
  const zero = (range.base - range.low) * scale;
  let [left, right] = [zero, zero];
  return (
    <svg
      class="bar"
      viewBox="0 0 100 8"
      preserveAspectRatio="none"
      role="img"
      aria-label={parts.map(([half, value]) => `${half} ${shortNumber(value)}`).join(", ")}
    >
      <rect class="track" width="100" height="8" rx="2" />
      {parts.map(([half, value]) => {
        const length = value - range.base;
        const width = Math.abs(length) * scale;
        if (length < 0) left -= width;
        const x = length < 0 ? left : right;
        if (length > 0) right += width;
        return <rect key={half} class={`${half}-part`} x={x} width={width} height="8" />;
      })}
      {range.low < range.base && <rect class="zero" x={zero - 0.5} width="1" height="8" />}
    </svg>
  );
}

/** Columns whose texts are shown while the record is not chosen. */
const SHOWN_COLUMNS = 2;

/** The texts of the record in which words were found. */
export function Matches({ highlight, isWhole }: { highlight: NonNullable<Hit["highlight"]>; isWhole: boolean }): JSX.Element {
  const columns = Object.entries(highlight);
  return (
    <div class={`matches small${isWhole ? "" : " short"}`}>
      {columns.slice(0, isWhole ? columns.length : SHOWN_COLUMNS).map(([column, texts]) => (
        <p key={column}>
          <bdi class="muted">{column}</bdi>{" "}
          {texts.map((text, i) => (
            <Fragment key={i}>
              {i > 0 && <span class="muted"> … </span>}
              <bdi>{markedPieces(text).map((piece, j) => (j % 2 === 1 ? <mark key={j}>{piece}</mark> : piece))}</bdi>
            </Fragment>
          ))}
        </p>
      ))}
    </div>
  );
}

interface ExplanationProps {
  explain: TextExplanation;
  fusion: SearchAnswer["fusion"];
}

/** The score as a sum that can be checked by hand: of the halves, and of each word in each column. */
export function Explanation({ explain: { vector, text }, fusion }: ExplanationProps): JSX.Element {
  const words = text?.words ?? [];
  return (
    <table class="why">
      <caption class="hidden">What made the score</caption>
      <tbody>
        {fusion !== undefined && (
          <>
            <HalfLine name="Vector" half={vector} fusion={fusion} none="No vector." />
            <HalfLine name="Words" half={text as typeof vector} fusion={fusion} none="None of the words." />
          </>
        )}
        {words.map(({ word, column, documentFrequency, frequency, score }, i) => (
          <tr key={i}>
            <th scope="row">
              {fusion !== undefined && <span class="key" />}
              <bdi>{word}</bdi>
            </th>
            <td>
              in <bdi>{column}</bdi> {frequency !== 1 && `× ${shortNumber(frequency)}`}
              <span class="muted"> · in {counted(documentFrequency, "record")}</span>
            </td>
            <td class="number">{shortNumber(score)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

interface HalfLineProps {
  name: string;
  half: TextExplanation["vector"];
  fusion: NonNullable<SearchAnswer["fusion"]>;
  /** Said if there is nothing from this half. */
  none: string;
}

function HalfLine({ name, half, fusion, none }: HalfLineProps): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <span class={`key ${name.toLowerCase()}-part`} aria-hidden="true" />
        <strong>{name}</strong>
      </th>
      <td class="muted">{half === undefined ? none : howOf(half, fusion)}</td>
      <td class="number">
        <strong>{shortNumber(half?.contribution ?? 0)}</strong>
      </td>
    </tr>
  );
}

/** As docs/migrating.md defines the methods. */
function howOf({ weight, score, mean, deviation, rank }: NonNullable<TextExplanation["vector"]>, { k }: HalfLineProps["fusion"]): string {
  const [share, value] = [shortNumber(weight), shortNumber(score)];
  if (rank !== undefined) return `${share} / (${k} + ${rank}): number ${rank}, by a score of ${value}`;
  if (mean === undefined || deviation === undefined) return `${share} × ${value}`;
  if (deviation === 0) return "The same for all records.";
  return `${share} × (${value} − ${shortNumber(mean)}) / ${shortNumber(deviation)}`;
}
