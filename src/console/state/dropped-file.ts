/** A file that is dropped anywhere on the page becomes a table; in the view of a table, it is imported into that one. */
import { effect, signal, untracked } from "@preact/signals";
import { tablePath } from "../api/client.ts";
import { access, mayAdminister, mayWrite } from "./page-session.ts";
import { go, route } from "./route.ts";
import { currentTable, databases, firstPlace } from "./server-content.ts";

/** A file that is to be imported, and the path of the table that it goes into; undefined: a new one. */
export const droppedFile = signal<{ readonly file: File; readonly path: string | undefined } | undefined>(undefined);
/** Why the last one is not imported. */
export const dropFault = signal("");

/** Dropped before the server has said what the key may do and what is there. */
const early = signal<File | undefined>(undefined);

export function followDrops(): void {
  // Or the browser would leave the page for the file.
  addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  addEventListener("drop", (event) => {
    const file = event.dataTransfer?.files[0];
    if (file === undefined) return;
    event.preventDefault();
    early.value = file;
  });
  effect(() => {
    const file = early.value;
    if (file === undefined || access.value === undefined || databases.value === undefined) return;
    early.value = undefined;
    untracked(() => take(file));
  });
  effect(() => {
    if (route.value) dropFault.value = "";
  });
}

function take(file: File): void {
  const { view, place } = route.value;
  const table = currentTable.value;
  if (mayAdminister.value && (view !== "table" || table === undefined)) makeTableOf(file);
  else if (!mayWrite.value) dropFault.value = "This key can only read, so nothing was imported.";
  else if (place === undefined || table === undefined)
    dropFault.value = "This key cannot create tables: open the table that the file belongs to.";
  else {
    droppedFile.value = { file, path: tablePath(place, table.name) };
    go("table", place, table.name);
  }
}

export function makeTableOf(file: File): void {
  droppedFile.value = { file, path: undefined };
  go("new", route.value.place ?? firstPlace());
}
