/** What is looked for: a record or numbers, in which column, by which measure, among which records. */
import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import { Field, Select } from "../parts/field.tsx";
import { SIMILARITY_NAMES } from "./terms.ts";

export interface QueryDraft {
  readonly column: string;
  readonly similarity: Similarity;
  readonly size: string;
  readonly filterText: string;
  readonly by: "record" | "vector";
  readonly recordId: string;
  readonly vectorText: string;
}

export type Faults = Partial<Record<"recordId" | "vectorText" | "filterText" | "size" | "general", string>>;

interface QueryFormProps {
  draft: QueryDraft;
  faults: Faults;
  columns: readonly (readonly [string, string])[];
  /** Ids to choose from while typing. */
  suggestions: readonly string[];
  isBusy: boolean;
  onChange: (change: Partial<QueryDraft>) => void;
  onSubmit: () => void;
}

export function QueryForm({ draft, faults, columns, suggestions, isBusy, onChange, onSubmit }: QueryFormProps): JSX.Element {
  return (
    <form
      class="card query-form"
      noValidate
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
      <div class="segmented" role="group" aria-label="Search by">
        <button type="button" aria-pressed={draft.by === "record"} onClick={() => onChange({ by: "record" })}>
          More like a record
        </button>
        <button type="button" aria-pressed={draft.by === "vector"} onClick={() => onChange({ by: "vector" })}>
          A vector
        </button>
      </div>
      {draft.by === "record" ? (
        <Field label="Record" fault={faults.recordId}>
          {(ids) => (
            <>
              <input
                {...ids}
                list="record-ids"
                autocomplete="off"
                spellcheck={false}
                placeholder="id"
                value={draft.recordId}
                onInput={(event) => onChange({ recordId: event.currentTarget.value })}
              />
              <datalist id="record-ids">
                {suggestions.map((id) => (
                  <option key={id} value={id} />
                ))}
              </datalist>
            </>
          )}
        </Field>
      ) : (
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
      )}
      <div class="field-row">
        <Select label="Column" value={draft.column} options={columns} onChoose={(column) => onChange({ column })} />
        <Select
          label="Measure"
          value={draft.similarity}
          options={SIMILARITY_NAMES}
          onChoose={(similarity) => onChange({ similarity: similarity as Similarity })}
        />
        <Field label="Results" fault={faults.size}>
          {(ids) => (
            <input
              {...ids}
              inputMode="numeric"
              class="narrow"
              value={draft.size}
              onInput={(event) => onChange({ size: event.currentTarget.value })}
            />
          )}
        </Field>
      </div>
      <Field label="Filter" fault={faults.filterText} hint="As the API takes it, in JSON; empty for all records.">
        {(ids) => (
          <input
            {...ids}
            class="code"
            spellcheck={false}
            autocomplete="off"
            placeholder='{"family": "blue"}'
            value={draft.filterText}
            onInput={(event) => onChange({ filterText: event.currentTarget.value })}
          />
        )}
      </Field>
      {faults.general !== undefined && (
        <p class="notice bad" role="alert">
          {faults.general}
        </p>
      )}
      <button type="submit" class="primary" disabled={isBusy}>
        {isBusy ? "Searching …" : "Search"}
      </button>
    </form>
  );
}
