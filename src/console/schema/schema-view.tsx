/** Tables and their links as a picture, the branches, and changes to both. A change is described before it is made. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { branchPath, call, messageOf, type Place } from "../api/client.ts";
import { type Confirmation, ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { NoTable } from "../parts/current-table.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Waiting } from "../parts/notice.tsx";
import { counted } from "../parts/numbers.ts";
import { mayAdminister } from "../state/page-session.ts";
import { go, goInstead, hrefOf, route } from "../state/route.ts";
import { catalogFault, currentTable, loadTables, type TableSchema, tables } from "../state/server-content.ts";
import { BranchForm, BranchPanel } from "./branch-panel.tsx";
import { consequencesOf, isDestructive, type SchemaOperation } from "./schema-operation.ts";
import { SchemaPicture } from "./schema-picture.tsx";
import { TablePanel } from "./table-panel.tsx";

export function SchemaView(): JSX.Element {
  const { place } = route.value;
  const [confirmation, ask] = useState<Confirmation | undefined>(undefined);
  const found = tables.value;
  return (
    <>
      {place === undefined ? (
        <NoDatabase ask={ask} />
      ) : found === undefined ? (
        catalogFault.value === "" ? (
          <Waiting what="Loading the schema …" />
        ) : (
          <Fault>{catalogFault.value}</Fault>
        )
      ) : (
        <Schema key={branchPath(place)} place={place} found={found} ask={ask} />
      )}
      {confirmation !== undefined && <ConfirmDialog confirmation={confirmation} onClose={() => ask(undefined)} />}
    </>
  );
}

function NoDatabase({ ask }: { ask: (confirmation: Confirmation) => void }): JSX.Element {
  if (!mayAdminister.value) return <p class="muted">This key cannot see any database.</p>;
  return (
    <section class="card schema-panel" aria-label="New database">
      <h2>New database</h2>
      <BranchForm place={undefined} branches={[]} ask={ask} />
    </section>
  );
}

interface SchemaProps {
  place: Place;
  found: readonly TableSchema[];
  ask: (confirmation: Confirmation) => void;
}

function Schema({ place, found, ask }: SchemaProps): JSX.Element {
  const [fault, setFault] = useState("");
  const table = currentTable.value;
  const name = route.value.table;

  /** @param next the table to go to when it is done. */
  async function propose(title: string, verb: string, operations: readonly SchemaOperation[], next?: string): Promise<void> {
    setFault("");
    try {
      const consequences = await consequencesOf(place, found, operations);
      ask({
        title,
        consequences,
        isDestructive: operations.some(isDestructive),
        verb,
        async run() {
          await refusedAs(() => call("POST", `${branchPath(place)}/schema/apply`, { edits: { operations } }));
          await loadTables(place);
          if (next !== undefined) go("schema", place, next);
          // It is deleted.
          else if (currentTable.value === undefined) goInstead("schema", place);
        },
      });
    } catch (error) {
      const said = withoutPlace(messageOf(error));
      // Another page may have changed it meanwhile: the current state is shown beside the refusal.
      void loadTables(place);
      // A deletion has no field beside which the refusal could be shown.
      if (operations.every(isDestructive)) setFault(said);
      throw new Error(said);
    }
  }

  return (
    <div class="schema-grid">
      <div class="schema-main">
        <div class="heading">
          <h2 class="small muted">{found.length === 0 ? "No tables yet" : counted(found.length, "table")}</h2>
          {mayAdminister.value && (
            <a class="button" href={hrefOf("new", place)}>
              <Icon name="plus" /> Table
            </a>
          )}
        </div>
        {fault !== "" && <Fault>{fault}</Fault>}
        {found.length > 0 && table === undefined && name !== undefined && <NoTable place={place} name={name} />}
        {found.length > 0 && <SchemaPicture place={place} tables={found} chosen={table?.name} />}
      </div>
      <div class="schema-side">
        {table !== undefined && (
          <TablePanel key={table.name} place={place} table={table} tableNames={found.map(({ name }) => name)} propose={propose} />
        )}
        <BranchPanel place={place} ask={ask} propose={propose} />
      </div>
    </div>
  );
}

async function refusedAs(work: () => Promise<unknown>): Promise<void> {
  try {
    await work();
  } catch (error) {
    throw new Error(withoutPlace(messageOf(error)));
  }
}

/** The operation's index in the request means nothing to the user who clicked. */
const withoutPlace = (message: string): string => message.replace(/^edits\.operations\[\d+\]: /, "");
