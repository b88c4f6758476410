/** What can be done with the records that a line on the map encloses: search in them, export them, delete them. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { MAX_FILTER_VALUES } from "../../filter/filter-limits.ts";
import { MAX_OPERATIONS } from "../../records/request-limits.ts";
import { type Place, tablePath } from "../api/client.ts";
import { type Confirmation, ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { counted } from "../parts/numbers.ts";
import { mayWrite } from "../state/page-session.ts";
import type { TableSchema } from "../state/server-content.ts";
import { historyOf } from "../table/record-history.ts";
import { queryPage, type TableRecord } from "../table/record-pages.ts";
import { ExportMenu } from "../table/transfer/export-menu.tsx";

/** The address has the filter. */
const MOST_IN_ADDRESS = 1_000;

interface LassoBarProps {
  place: Place;
  table: TableSchema;
  ids: readonly string[];
  onFilter: (ids: readonly string[]) => void;
  onDeleted: () => void;
  onClose: () => void;
}

export function LassoBar({ place, table, ids, onFilter, onDeleted, onClose }: LassoBarProps): JSX.Element {
  const [confirmation, ask] = useState<Confirmation | undefined>(undefined);
  const filter = { id: { $any: ids } };
  const some = ids.length > 0;

  const askToDelete = (): void =>
    ask({
      title: `Delete ${counted(ids.length, "record")}`,
      consequences: [
        `Deletes the ${counted(ids.length, "record")} within the line from the table ${table.name}.`,
        "Links to them become empty.",
        "You can undo it in the table while this page is open; the links stay empty.",
      ],
      isDestructive: true,
      verb: "Delete",
      async run() {
        // As they are now, so that they can be brought back.
        const records: TableRecord[] = [];
        const path = tablePath(place, table.name);
        let page = await queryPage(path, { filter, sort: undefined }, MAX_OPERATIONS);
        records.push(...page.records);
        while (page.meta.page.more) {
          page = await queryPage(path, { after: page.meta.page.cursor }, page.size);
          records.push(...page.records);
        }
        await historyOf(place, table).deleteAll(records);
        onDeleted();
      },
    });

  return (
    <div class="actions lasso-bar" role="group" aria-label="Records within the line">
      <strong role="status">{counted(ids.length, "record")} within the line</strong>
      <button
        type="button"
        disabled={!some || ids.length > MOST_IN_ADDRESS}
        title={ids.length > MOST_IN_ADDRESS ? `${MOST_IN_ADDRESS.toLocaleString("en")} at most` : undefined}
        onClick={() => onFilter(ids)}
      >
        Search in them
      </button>
      {some && ids.length <= MAX_FILTER_VALUES && <ExportMenu place={place} table={table} question={{ filter, sort: undefined }} />}
      {mayWrite.value && (
        <button
          type="button"
          class="danger"
          disabled={!some || ids.length > MAX_OPERATIONS}
          title={ids.length > MAX_OPERATIONS ? `${MAX_OPERATIONS.toLocaleString("en")} at most` : undefined}
          onClick={askToDelete}
        >
          Delete
        </button>
      )}
      <button type="button" class="quiet" onClick={onClose}>
        Remove the line
      </button>
      {confirmation !== undefined && <ConfirmDialog confirmation={confirmation} onClose={() => ask(undefined)} />}
    </div>
  );
}
