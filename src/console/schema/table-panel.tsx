/** The table chosen in the picture: its columns, what can be changed about them, and the forms for it. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { MAX_DIMENSION, MIN_COLUMN_DIMENSION } from "../../dimension.ts";
import { isUnderscored } from "../../filter/system-columns.ts";
import { COLUMN_TRAITS } from "../../records/column-traits.ts";
import { type Place, tablePath } from "../api/client.ts";
import { ActionForm, Select, TextField, useAttempt } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { useKept } from "../state/kept.ts";
import { mayAdminister } from "../state/page-session.ts";
import { hrefOf } from "../state/route.ts";
import type { ColumnSchema, TableSchema } from "../state/server-content.ts";
import { countRecords, rulesOf, type SchemaOperation, TYPE_WORDS, typeInWords } from "./schema-operation.ts";

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
  const kept = tablePath(place, table.name);
  const [editing, setEditing] = useKept<Editing | undefined>(`schema ${kept}`, () => undefined);
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
          // The next new column is another one.
          kept={`${kept} ${table.columns.length}`}
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
          kept={kept}
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
                kept={`${kept} ${column.name}`}
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
      {table.columns.length === 0 && <p class="muted">No columns yet, apart from the id.</p>}
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

interface ColumnFormProps {
  /** Names what is kept of it. */
  kept: string;
  /** Tables that a link can point to. */
  tableNames: readonly string[];
  /** @throws what is wrong with it. */
  onSubmit: (column: ColumnSchema) => Promise<void>;
  onCancel: () => void;
}

interface ColumnFormDraft {
  readonly name: string;
  readonly type: ColumnSchema["type"];
  readonly dimension: string;
  readonly target: string;
  readonly notNull: boolean;
  readonly unique: boolean;
  readonly defaultValue: string;
}

const NEW_COLUMN: ColumnFormDraft = {
  name: "",
  type: "string",
  dimension: "384",
  target: "",
  notNull: false,
  unique: false,
  defaultValue: "",
};

/** A new column: its name, type, and rules. The server decides what is allowed. */
function ColumnForm({ kept, tableNames, onSubmit, onCancel }: ColumnFormProps): JSX.Element {
  const [draft, setDraft] = useKept<ColumnFormDraft>(`new column ${kept}`, () => ({ ...NEW_COLUMN, target: tableNames[0] ?? "" }));
  const { name, type, dimension, target, notNull, unique, defaultValue } = draft;
  const change = (part: Partial<ColumnFormDraft>): void => setDraft({ ...draft, ...part });
  const { fault, attempt } = useAttempt();

  const column = (): ColumnSchema => ({
    name,
    type,
    ...(type === "vector" ? { vector: { dimension: Number(dimension) } } : {}),
    ...(type === "link" ? { link: { table: target } } : {}),
    ...(notNull ? { notNull } : {}),
    ...(unique && COLUMN_TRAITS[type].canBeUnique ? { unique } : {}),
    ...(defaultValue === "" ? {} : { defaultValue }),
  });
  // The server's messages begin with the member they are about.
  const about = /dimension/.test(fault) ? "dimension" : /defaultValue|default/.test(fault) ? "defaultValue" : "name";
  const faultOf = (field: string): string => (about === field ? fault : "");
  return (
    <ActionForm
      label="New column"
      look="schema-form"
      verb="Add"
      onSubmit={() => void attempt(() => onSubmit(column()))}
      onCancel={onCancel}
    >
      <div class="schema-fields">
        <TextField label="Name" fault={faultOf("name")} value={name} onInput={(text) => change({ name: text })} isFirst />
        <Select
          label="Type"
          value={type}
          options={Object.entries(TYPE_WORDS)}
          onChoose={(value) => change({ type: value as ColumnSchema["type"] })}
        />
        {type === "vector" && (
          <TextField
            label="Dimension"
            hint={`${MIN_COLUMN_DIMENSION} to ${MAX_DIMENSION.toLocaleString("en")}`}
            fault={faultOf("dimension")}
            value={dimension}
            onInput={(text) => change({ dimension: text })}
            inputMode="numeric"
          />
        )}
        {type === "link" && (
          <Select
            label="Table"
            value={target}
            options={tableNames.map((table) => [table, table] as const)}
            onChoose={(table) => change({ target: table })}
          />
        )}
        {type !== "vector" && (
          <TextField
            label="Default value"
            hint="For records that come without a value."
            fault={faultOf("defaultValue")}
            value={defaultValue}
            onInput={(text) => change({ defaultValue: text })}
          />
        )}
      </div>
      <div class="actions">
        <label class="check">
          <input type="checkbox" checked={notNull} onChange={(event) => change({ notNull: event.currentTarget.checked })} />
          not null
        </label>
        {COLUMN_TRAITS[type].canBeUnique && (
          <label class="check">
            <input type="checkbox" checked={unique} onChange={(event) => change({ unique: event.currentTarget.checked })} />
            unique
          </label>
        )}
      </div>
    </ActionForm>
  );
}

interface NameFormProps {
  /** Names what is kept of it. */
  kept: string;
  title: string;
  label: string;
  start: string;
  verb: string;
  /** @throws what is wrong with the name. */
  onSubmit: (name: string) => Promise<void>;
  onCancel: () => void;
}

/**
 * A form for one name, shown where it will be used. If the server refuses the name, its message is shown
 * beside it.
 */
function NameForm({ kept, title, label, start, verb, onSubmit, onCancel }: NameFormProps): JSX.Element {
  const [name, setName] = useKept(`new name ${kept}`, () => start);
  const { fault, attempt } = useAttempt();
  return (
    <ActionForm label={title} look="schema-form" verb={verb} onSubmit={() => void attempt(() => onSubmit(name))} onCancel={onCancel}>
      <TextField label={label} fault={fault} value={name} onInput={setName} isFirst />
    </ActionForm>
  );
}
