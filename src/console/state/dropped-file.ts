/** A file that is dropped anywhere on the page goes into the table that is chosen. */
import { effect, signal } from "@preact/signals";
import { tablePath } from "../api/client.ts";
import { mayWrite } from "./page-session.ts";
import { go, route } from "./route.ts";
import { currentTable } from "./server-content.ts";

/** A file that is to be imported, and the path of the table that it goes into. */
export const droppedFile = signal<{ readonly file: File; readonly path: string } | undefined>(undefined);
/** Why the last one is not imported. */
export const dropFault = signal("");

export function followDrops(): void {
  // Or the browser would leave the page for the file.
  addEventListener("dragover", (event) => event.dataTransfer?.types.includes("Files") && event.preventDefault());
  addEventListener("drop", take);
  effect(() => {
    if (route.value) dropFault.value = "";
  });
}

function take(event: DragEvent): void {
  const file = event.dataTransfer?.files[0];
  if (file === undefined) return;
  event.preventDefault();
  const { place } = route.value;
  const table = currentTable.value;
  if (place === undefined || table === undefined) dropFault.value = "A file is imported into a table: open one, or make one under Schema.";
  else if (!mayWrite.value) dropFault.value = "This key may only read, so nothing was imported.";
  else {
    droppedFile.value = { file, path: tablePath(place, table.name) };
    go("table", place, table.name);
  }
}
