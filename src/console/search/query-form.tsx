/** The query: a record, numbers or words; the column; the measure; and which records to search. */
import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import { Field, Select, submitting, TextField } from "../parts/form.tsx";
import { Fault } from "../parts/notice.tsx";
import { SIMILARITY_NAMES } from "./terms.ts";

export interface QueryDraft {
  readonly column: string;
  readonly similarity: Similarity;
  readonly size: string;
  readonly filterText: string;
  readonly by: "record" | "vector" | "words";
  readonly recordId: string;
  readonly vectorText: string;
  /** If given with a record or a vector, both rankings are fused. */
  readonly words: string;
}

export type Faults = Partial<Record<"recordId" | "vectorText" | "words" | "filterText" | "size" | "general", string>>;

interface QueryFormProps {
  draft: QueryDraft;
  faults: Faults;
  /** Vector columns. If there are none, only words can be searched for. */
  columns: readonly (readonly [string, string])[];
  /** Whether there is text to search. */
  hasText: boolean;
  /** Ids to choose from while typing. */
  suggestions: readonly string[];
  isBusy: boolean;
  onChange: (change: Partial<QueryDraft>) => void;
  onSubmit: () => void;
}

export function QueryForm(props: QueryFormProps): JSX.Element {
  const { draft, faults, columns, hasText, isBusy, onChange, onSubmit } = props;
  const ways = [
    ...(columns.length > 0
      ? ([
          ["record", "More like a record"],
          ["vector", "A vector"],
        ] as const)
      : []),
    ...(hasText ? ([["words", "Words"]] as const) : []),
  ];
  return (
    <form class="card query-form" noValidate onSubmit={submitting(onSubmit)}>
      {ways.length > 1 && (
        <div class="segmented" role="group" aria-label="Search by">
          {ways.map(([by, said]) => (
            <button key={by} type="button" aria-pressed={draft.by === by} onClick={() => onChange({ by })}>
              {said}
            </button>
          ))}
        </div>
      )}
      {draft.by === "record" && <RecordField {...props} />}
      {draft.by === "vector" && <VectorField {...props} />}
      {hasText && <WordsField {...props} />}
      <div class="field-row">
        {draft.by !== "words" && (
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
        <TextField
          label="Results"
          fault={faults.size}
          inputMode="numeric"
          class="narrow"
          value={draft.size}
          onInput={(size) => onChange({ size })}
        />
      </div>
      <TextField
        label="Filter"
        fault={faults.filterText}
        hint="As the API takes it, in JSON; empty for all records."
        class="code"
        placeholder='{"family": "blue"}'
        value={draft.filterText}
        onInput={(filterText) => onChange({ filterText })}
      />
      {faults.general !== undefined && <Fault>{faults.general}</Fault>}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Searching …" : "Search"}
      </button>
    </form>
  );
}

function RecordField({ draft, faults, suggestions, onChange }: QueryFormProps): JSX.Element {
  return (
    <>
      <TextField
        label="Record"
        fault={faults.recordId}
        list="record-ids"
        placeholder="id"
        value={draft.recordId}
        onInput={(recordId) => onChange({ recordId })}
      />
      <datalist id="record-ids">
        {suggestions.map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </>
  );
}

function VectorField({ draft, faults, onChange }: QueryFormProps): JSX.Element {
  return (
    <Field label="Vector" fault={faults.vectorText} hint="Numbers between commas or spaces, with or without brackets.">
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

function WordsField({ draft, faults, onChange }: QueryFormProps): JSX.Element {
  const isAlone = draft.by === "words";
  return (
    <TextField
      label={isAlone ? "Words" : "And words"}
      fault={faults.words}
      hint={isAlone ? undefined : "Optional: joins both rankings, by the records' places in them."}
      spellcheck
      value={draft.words}
      onInput={(words) => onChange({ words })}
    />
  );
}
