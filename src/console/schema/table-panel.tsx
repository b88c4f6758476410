/** The table chosen in the picture: its columns, and what can be changed about them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isUnderscored } from "../../filter/system-columns.ts";
import type { Place } from "../api/paths.ts";
import { Icon } from "../parts/icons.tsx";
import { mayAdminister } from "../state/page-session.ts";
import { hrefOf } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { ColumnForm } from "./column-form.tsx";
import { countRecords } from "./consequences.ts";
import { NameForm } from "./name-form.tsx";
import { rulesOf, type SchemaOperation, typeInWords } from "./schema-operation.ts";

interface TablePanelProps {
  place: Place;
  table: TableSchema;
  tableNames: readonly string[];
  /**
   * Shows what the operations will do, and asks for confirmation.
   * @throws the server's objection.
   */
  propose: (title: string, verb: string, operations: readonly SchemaOperation[], next?: string) => Promise<void>;
}

type Editing = { readonly what: "add" } | { readonly what: "table" } | { readonly what: "column"; readonly column: string };

export function TablePanel({ place, table, tableNames, propose }: TablePanelProps): JSX.Element {
  const [records, setRecords] = useState<number | undefined>(undefined);
  const [editing, setEditing] = useState<Editing | undefined>(undefined);
  useEffect(() => {
    setRecords(undefined);
    countRecords(place, table.name).then(
      ({ all }) => setRecords(all),
      () => setRecords(undefined),
    );
  }, [table]);
  const stop = (): void => setEditing(undefined);

  async function proposeAndStop(...change: Parameters<typeof propose>): Promise<void> {
    await propose(...change);
    stop();
  }
  const remove = (title: string, operation: SchemaOperation): void => void propose(title, "Delete", [operation]).catch(() => undefined);

  return (
    <section class="card schema-panel" aria-label={`Table ${table.name}`}>
      <div class="heading">
        <h2>
          <bdi>{table.name}</bdi>
        </h2>
        <p class="muted small">
          <a href={hrefOf("table", place, table.name)}>{records === undefined ? "records" : `${records.toLocaleString("en")} records`}</a>
        </p>
      </div>
      {mayAdminister.value && (
        <div class="actions">
          <button type="button" onClick={() => setEditing({ what: "add" })}>
            <Icon name="plus" /> Column
          </button>
          <button type="button" onClick={() => setEditing({ what: "table" })}>
            Rename
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => remove(`Delete the table ${table.name}`, { removeTable: { table: table.name } })}
          >
            <Icon name="trash" /> Delete table
          </button>
        </div>
      )}
      {editing?.what === "add" && (
        <ColumnForm
          tableNames={tableNames}
          onSubmit={(column) =>
            proposeAndStop(`Add a column to ${table.name}`, "Add column", [{ addColumn: { table: table.name, column } }])
          }
          onCancel={stop}
        />
      )}
      {editing?.what === "table" && (
        <NameForm
          title="Rename the table"
          label="New name of the table"
          start={table.name}
          verb="Rename"
          onSubmit={(newName) =>
            proposeAndStop(`Rename the table ${table.name}`, "Rename", [{ renameTable: { oldName: table.name, newName } }], newName)
          }
          onCancel={stop}
        />
      )}
      <ul class="column-list" aria-label="Columns">
        {table.columns.map((column) => (
          <li key={column.name}>
            {editing?.what === "column" && editing.column === column.name ? (
              <NameForm
                title={`Rename the column ${column.name}`}
                label={`New name of ${column.name}`}
                start={column.name}
                verb="Rename"
                onSubmit={(newName) =>
                  proposeAndStop(`Rename the column ${column.name}`, "Rename", [
                    { renameColumn: { table: table.name, oldName: column.name, newName } },
                  ])
                }
                onCancel={stop}
              />
            ) : (
              <Column
                place={place}
                column={column}
                onRename={() => setEditing({ what: "column", column: column.name })}
                onRemove={() => remove(`Delete the column ${column.name}`, { removeColumn: { table: table.name, column: column.name } })}
              />
            )}
          </li>
        ))}
      </ul>
      {table.columns.length === 0 && <p class="muted">No columns yet, besides id and xata.</p>}
    </section>
  );
}

interface ColumnProps {
  place: Place;
  column: ColumnSchema;
  onRename: () => void;
  onRemove: () => void;
}

function Column({ place, column, onRename, onRemove }: ColumnProps): JSX.Element {
  return (
    <div class="column-line">
      <bdi class="column-name">{column.name}</bdi>
      <span class="type">
        {column.link === undefined ? (
          typeInWords(column)
        ) : (
          <>
            link to <a href={hrefOf("schema", place, column.link.table)}>{column.link.table}</a>
          </>
        )}
        {rulesOf(column).map((rule) => ` · ${rule}`)}
      </span>
      {mayAdminister.value && !isUnderscored(column.name) && (
        <span class="column-actions">
          <button type="button" class="quiet" aria-label={`Rename ${column.name}`} onClick={onRename}>
            Rename
          </button>
          <button type="button" class="quiet" aria-label={`Delete ${column.name}`} onClick={onRemove}>
            <Icon name="trash" />
          </button>
        </span>
      )}
    </div>
  );
}
