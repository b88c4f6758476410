/** A record at the side: its fields, each formatted and edited in place, its nearest records, and its address. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ApiError, call, type Place, recordPath, tablePath } from "../api/client.ts";
import { CopyButton } from "../parts/copy-button.tsx";
import { useAnswer } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Notice, Waiting } from "../parts/notice.tsx";
import { timeInWords } from "../parts/numbers.ts";
import { vectorOfRecord } from "../search/run-search.ts";
import { mayWrite } from "../state/page-session.ts";
import { hrefOf, openRecord, route } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { canBeTitle, titlesOf, useTitles } from "../state/titles.ts";
import { CellEditor } from "../table/cell.tsx";
import { textOf } from "../table/cell-text.ts";
import { changedRecord, historyOf, saveCell } from "../table/record-history.ts";
import type { TableRecord } from "../table/record-pages.ts";
import { FieldValue } from "./field-value.tsx";

interface RecordCardProps {
  place: Place;
  table: TableSchema;
  id: string;
}

export function RecordCard({ place, table, id }: RecordCardProps): JSX.Element {
  const titles = titlesOf(place, table);
  const read = (): Promise<TableRecord> => call<TableRecord>("GET", `${recordPath(place, table.name, id)}?columns=*`);
  // Undo, and changes in the table, are read again.
  const changes = historyOf(place, table).changes.value;
  const { answer, fault } = useAnswer(() => read().catch(missing), [place.database, place.branch, table, id, changes]);
  const changed = changedRecord.value;
  const isNewer =
    changed?.path === tablePath(place, table.name) && changed.record.id === id && (answer?.xata.version ?? 0) < changed.record.xata.version;
  const record = isNewer ? changed.record : answer;
  useEffect(() => {
    if (record !== undefined && record !== null) titles.take(record);
  }, [record, titles.column.value]);
  return (
    <aside
      class="card record-card"
      aria-label={`Record ${id}`}
      onKeyDown={(event) => {
        if (event.key === "Escape") openRecord(undefined);
      }}
    >
      <div class="heading">
        <h2>
          <bdi>{titles.of(id)}</bdi>
        </h2>
        <button type="button" class="quiet" aria-label="Close the record" onClick={() => openRecord(undefined)}>
          <Icon name="close" />
        </button>
      </div>
      {fault !== "" && <Fault>{fault}</Fault>}
      {answer === undefined && fault === "" && <Waiting what="Loading the record …" />}
      {record === null && (
        <Notice>
          There is no record <bdi class="name">{id}</bdi> in this table.
        </Notice>
      )}
      {record !== undefined && record !== null && <Fields place={place} table={table} record={record} />}
    </aside>
  );
}

function missing(error: unknown): null {
  if (error instanceof ApiError && error.status === 404) return null;
  throw error;
}

function Fields({ place, table, record }: { place: Place; table: TableSchema; record: TableRecord }): JSX.Element {
  const [edited, setEdited] = useState<string | undefined>(undefined);
  const titles = titlesOf(place, table);
  const { id, xata } = record;
  const near = table.columns.find(({ name, type }) => type === "vector" && Array.isArray(record[name]));
  const save = (column: ColumnSchema, text: string): Promise<void> => saveCell(place, table, record, column, text);
  return (
    <>
      <div class="actions">
        <CopyButton label="Copy as JSON" text={() => JSON.stringify(record, undefined, 2)} />
        <CopyButton
          label="Copy its link"
          icon="link"
          text={() => new URL(hrefOf("table", place, table.name, id), location.href.replace(/#.*/s, "")).href}
        />
      </div>
      <dl class="fields">
        <div class="record-field">
          <dt>id</dt>
          <dd>
            <bdi>{id}</bdi>
          </dd>
        </div>
        {table.columns.map((column) => (
          <div key={column.name} class="record-field">
            <dt>
              <bdi>{column.name}</bdi> <span class="type">{column.type}</span>
              {mayWrite.value && edited !== column.name && (
                <button type="button" class="quiet" aria-label={`Edit ${column.name}`} onClick={() => setEdited(column.name)}>
                  Edit
                </button>
              )}
            </dt>
            <dd>
              {edited === column.name ? (
                <CellEditor
                  kept={`card ${tablePath(place, table.name)} ${id} ${column.name}`}
                  column={column}
                  shown={textOf(column, record[column.name])}
                  onSave={(text) => save(column, text)}
                  onClose={() => setEdited(undefined)}
                />
              ) : (
                <FieldValue column={column} value={record[column.name]} place={place} />
              )}
            </dd>
          </div>
        ))}
      </dl>
      {near !== undefined && <Neighbours place={place} table={table} id={id} column={near.name} version={xata.version} />}
      <p class="muted small">
        Created {timeInWords(xata.createdAt)}
        {xata.version > 0 ? `, last changed ${timeInWords(xata.updatedAt)}` : ""}.
      </p>
      {table.columns.some(canBeTitle) && (
        <label class="choice">
          <span class="choice-label">Title of each record in {table.name}</span>
          <select value={titles.column.value ?? ""} onChange={(event) => titles.choose(event.currentTarget.value || undefined)}>
            {["", ...table.columns.filter(canBeTitle).map(({ name }) => name)].map((name) => (
              <option key={name} value={name} selected={name === (titles.column.value ?? "")}>
                {name === "" ? "id" : name}
              </option>
            ))}
          </select>
        </label>
      )}
    </>
  );
}

const MOST_NEIGHBOURS = 5;

interface NeighboursProps {
  place: Place;
  table: TableSchema;
  id: string;
  column: string;
  version: number;
}

/** The nearest records by a vector. */
function Neighbours({ place, table, id, column, version }: NeighboursProps): JSX.Element | null {
  const { params } = route.value;
  const { answer: ids, fault } = useAnswer(async () => {
    const queryVector = await vectorOfRecord(place, table.name, id, column);
    const body = { column, queryVector, size: MOST_NEIGHBOURS + 1 };
    const { results } = await call<{ results: { id: string }[] }>("POST", `${tablePath(place, table.name)}/vectorSearch`, body);
    return results
      .map((result) => result.id)
      .filter((other) => other !== id)
      .slice(0, MOST_NEIGHBOURS);
  }, [id, column, version]);
  const titles = useTitles(place, table, ids ?? []);
  if (fault !== "") return <p class="muted small">{fault}</p>;
  return (
    <section aria-label="Nearest records">
      <h3>
        Nearest by <bdi>{column}</bdi>
      </h3>
      <ol class="neighbours">
        {ids?.map((other) => (
          <li key={other}>
            <a href={hrefOf(route.value.view, place, table.name, other, params)}>
              <bdi>{titles.of(other)}</bdi>
            </a>
          </li>
        ))}
      </ol>
      <a href={hrefOf("search", place, table.name, undefined, { like: id })}>Search for more like this</a>
    </section>
  );
}
