/** The query: words, and a record or numbers to be near to; how both are made one; and which records to search. */
import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import type { FusionMethod } from "../../full-text/fusion.ts";
import { Field, Select, submitting, TextField } from "../parts/form.tsx";
import { Fault } from "../parts/notice.tsx";
import { SIMILARITY_NAMES } from "./terms.ts";

export interface QueryDraft {
  readonly column: string;
  readonly similarity: Similarity;
  readonly size: string;
  readonly filterText: string;
  /** What records shall be near to; "words": to nothing. */
  readonly by: "record" | "vector" | "words";
  readonly recordId: string;
  readonly vectorText: string;
  /** If given with a record or a vector, both scores are made one. */
  readonly words: string;
  /** How many edits a word of a record may be away: "0", "1" or "2". */
  readonly fuzziness: string;
  readonly method: FusionMethod;
  readonly vectorWeight: number;
  /** Of rrf. */
  readonly k: string;
}

export type Faults = Partial<Record<"recordId" | "vectorText" | "words" | "k" | "filterText" | "size" | "general", string>>;

interface QueryFormProps {
  draft: QueryDraft;
  faults: Faults;
  /** Vector columns. If there are none, only words can be searched for. */
  columns: readonly (readonly [string, string])[];
  /** Whether there is text to search. */
  hasText: boolean;
  /** Ids to choose from while typing. */
  suggestions: readonly string[];
  nameOf: (id: string) => string;
  isAway: boolean;
  isBusy: boolean;
  /** What the server says while it is not ready for searches; "" if it is. */
  waiting: string;
  onChange: (change: Partial<QueryDraft>) => void;
  onSubmit: () => void;
  onStop: () => void;
}

const NEAR = [
  ["record", "More like a record"],
  ["vector", "A vector"],
  ["words", "Words only"],
] as const;

const FUZZINESS = [
  ["0", "none"],
  ["1", "one letter"],
  ["2", "two letters"],
] as const;

const METHODS: readonly (readonly [FusionMethod, string])[] = [
  ["standardized", "z-scores"],
  ["rrf", "ranks"],
  ["linear", "raw scores"],
];

export function QueryForm(props: QueryFormProps): JSX.Element {
  const { draft, faults, columns, hasText, isAway, isBusy, waiting, onChange, onSubmit, onStop } = props;
  const { by, method } = draft;
  const hasWords = hasText && (by === "words" || draft.words.trim() !== "");
  const isBoth = hasWords && by !== "words";
  return (
    <form class="card query-form" noValidate onSubmit={submitting(onSubmit)}>
      {hasText && (
        <TextField
          label="Words"
          fault={faults.words}
          placeholder={by === "words" ? "" : "optional"}
          spellcheck
          value={draft.words}
          onInput={(words) => onChange({ words })}
        />
      )}
      {columns.length > 0 && (
        <div class="segmented" role="group" aria-label="Search by">
          {NEAR.filter(([way]) => way !== "words" || hasText).map(([way, said]) => (
            <button key={way} type="button" aria-pressed={by === way} onClick={() => onChange({ by: way })}>
              {said}
            </button>
          ))}
        </div>
      )}
      {by === "record" && <RecordField {...props} />}
      {by === "vector" && <VectorField {...props} />}
      {isBoth && <Balance {...props} />}
      <div class="field-row">
        {by !== "words" && (
          <>
            <Select label="Column" value={draft.column} options={columns} onChoose={(column) => onChange({ column })} />
            <Select
              label="Measure"
              value={draft.similarity}
              options={SIMILARITY_NAMES}
              onChoose={(similarity) => onChange({ similarity: similarity as Similarity })}
            />
          </>
        )}
        {hasWords && (
          <Select label="Typos allowed" value={draft.fuzziness} options={FUZZINESS} onChoose={(fuzziness) => onChange({ fuzziness })} />
        )}
        {isBoth && (
          <Select label="Combined by" value={method} options={METHODS} onChoose={(name) => onChange({ method: name as FusionMethod })} />
        )}
        {isBoth && method === "rrf" && (
          <TextField label="k" fault={faults.k} inputMode="numeric" value={draft.k} onInput={(k) => onChange({ k })} />
        )}
      </div>
      <div class="filter-row">
        <TextField
          label="Filter"
          fault={faults.filterText}
          hint="JSON, as in the API."
          class="code"
          placeholder='{"family": "blue"}'
          value={draft.filterText}
          onInput={(filterText) => onChange({ filterText })}
        />
        <TextField label="Results" fault={faults.size} inputMode="numeric" value={draft.size} onInput={(size) => onChange({ size })} />
      </div>
      {faults.general !== undefined && <Fault>{faults.general}</Fault>}
      {waiting !== "" && (
        <p class="notice" role="status">
          {waiting.replace(/; try again in a moment\.$/, ".")} The search then continues by itself.
        </p>
      )}
      {/* One element, so that the focus stays on it. */}
      <button
        type={isBusy ? "button" : "submit"}
        class={isBusy ? "" : "primary"}
        disabled={isAway}
        onClick={(event) => {
          if (!isBusy) return;
          // It may be a submit button again before the browser acts on the click.
          event.preventDefault();
          onStop();
        }}
      >
        {isBusy ? "Stop" : "Search"}
      </button>
    </form>
  );
}

/** How much the vector counts beside the words. */
function Balance({ draft: { vectorWeight }, onChange }: QueryFormProps): JSX.Element {
  const percent = Math.round(vectorWeight * 100);
  return (
    <Field label="Weight">
      {(ids) => (
        <div class="balance">
          <span>words {100 - percent} %</span>
          <input
            {...ids}
            type="range"
            min="0"
            max="1"
            step="0.05"
            value={vectorWeight}
            aria-valuetext={`words ${100 - percent} %, vector ${percent} %`}
            onInput={(event) => onChange({ vectorWeight: Number(event.currentTarget.value) })}
          />
          <span>vector {percent} %</span>
        </div>
      )}
    </Field>
  );
}

function RecordField({ draft, faults, suggestions, nameOf, onChange }: QueryFormProps): JSX.Element {
  return (
    <>
      <TextField
        label="Record"
        fault={faults.recordId}
        list="record-ids"
        placeholder="title or id"
        value={draft.recordId}
        onInput={(recordId) => onChange({ recordId })}
      />
      <datalist id="record-ids">
        {suggestions.map((id) => (
          <option key={id} value={id} label={nameOf(id)} />
        ))}
      </datalist>
    </>
  );
}

function VectorField({ draft, faults, onChange }: QueryFormProps): JSX.Element {
  return (
    <Field label="Vector" fault={faults.vectorText} hint="Numbers separated by commas or spaces. Brackets are fine.">
      {(ids) => (
        <textarea
          {...ids}
          rows={3}
          spellcheck={false}
          value={draft.vectorText}
          onInput={(event) => onChange({ vectorText: event.currentTarget.value })}
        />
      )}
    </Field>
  );
}
