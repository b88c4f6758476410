/** Goes to a view, a table, a branch or a record by a part of its name. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { branchPath, type Place } from "../api/client.ts";
import { submitting, useAnswer } from "../parts/form.tsx";
import { hrefOf, lastHrefOf, route, type View } from "../state/route.ts";
import { currentTable, databases, fetchTables, firstPlace, type TableSchema, tables } from "../state/server-content.ts";
import { titlesOf } from "../state/titles.ts";

interface Goal {
  readonly name: string;
  readonly kind: string;
  readonly href: string;
}

const VIEWS: readonly (readonly [View, string])[] = [
  ["home", "Home"],
  ["search", "Search"],
  ["table", "Table"],
  ["sql", "SQL"],
  ["schema", "Schema"],
  ["server", "Server"],
  ["reference", "API"],
  ["new", "New table"],
];
const MOST_SHOWN = 12;
const MOST_RECORDS = 6;
/** People type faster than this. */
const PAUSE_MS = 150;

export function Finder({ onClose }: { onClose: () => void }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const [records, setRecords] = useState<readonly Goal[]>([]);
  // Where no branch is shown, as on Home, the tables of the first one are found.
  const place = route.value.place ?? firstPlace();
  const table = currentTable.value;
  const { answer: found } = useAnswer(
    async () => tables.peek() ?? (place === undefined ? [] : await fetchTables(place)),
    [tables.value, place === undefined ? "" : branchPath(place)],
  );

  useEffect(() => dialog.current?.showModal(), []);
  useEffect(() => {
    setRecords([]);
    if (place === undefined || table === undefined || wanted.trim() === "") return;
    let isOver = false;
    const timer = setTimeout(() => {
      findRecords(place, table, wanted.trim()).then(
        (found) => !isOver && setRecords(found),
        () => undefined,
      );
    }, PAUSE_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [wanted, table]);

  const goals = [
    ...namedGoals(place, found ?? [])
      .filter(({ name, kind }) => isAbout(`${kind} ${name}`, wanted))
      .slice(0, MOST_SHOWN),
    ...records,
  ];
  const chosen = Math.min(at, goals.length - 1);
  useEffect(() => document.getElementById(`goal-${chosen}`)?.scrollIntoView({ block: "nearest" }), [chosen]);

  function take(goal: Goal | undefined): void {
    if (goal === undefined) return;
    dialog.current?.close();
    location.hash = goal.href;
  }
  function pressKey(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || goals.length === 0) return;
    event.preventDefault();
    setAt((chosen + step + goals.length) % goals.length);
  }
  return (
    <dialog ref={dialog} class="dialog finder" aria-label="Go to" onClose={onClose}>
      <form onSubmit={submitting(() => take(goals[chosen]))}>
        <input
          role="combobox"
          aria-label="Name of a view, a table, a branch or a record"
          aria-expanded="true"
          aria-controls="goals"
          aria-activedescendant={goals.length === 0 ? undefined : `goal-${chosen}`}
          placeholder="A view, a table, a branch, a record …"
          autocomplete="off"
          spellcheck={false}
          value={wanted}
          onKeyDown={pressKey}
          onInput={(event) => {
            setWanted(event.currentTarget.value);
            setAt(0);
          }}
        />
      </form>
      <div role="listbox" id="goals" aria-label="Found" tabIndex={-1}>
        {goals.map((goal, i) => (
          <div
            key={goal.href}
            id={`goal-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            class="goal"
            onClick={() => take(goal)}
            // The field has the keys; a screen reader may have come here without it.
            onKeyDown={(event) => event.key === "Enter" && take(goal)}
          >
            <bdi>{goal.name}</bdi> <span class="muted small">{goal.kind}</span>
          </div>
        ))}
      </div>
      {goals.length === 0 && <p class="muted small">Nothing found with that name.</p>}
    </dialog>
  );
}

function namedGoals(place: Place | undefined, found: readonly TableSchema[]): readonly Goal[] {
  const table = route.value.table;
  const branches = (databases.value ?? []).flatMap(({ name, branches }) => branches.map((branch) => ({ database: name, branch })));
  return [
    ...found.map(({ name }) => ({ name, kind: "table", href: lastHrefOf("table", place, name) })),
    ...VIEWS.map(([view, name]) => ({ name, kind: "view", href: lastHrefOf(view, place, table) })),
    ...branches.map((other) => ({ name: branchPath(other).slice("/db/".length), kind: "branch", href: hrefOf("schema", other) })),
  ];
}

const isAbout = (text: string, wanted: string): boolean =>
  wanted
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));

async function findRecords(place: Place, table: TableSchema, wanted: string): Promise<readonly Goal[]> {
  const titles = titlesOf(place, table);
  const ids = await titles.find(wanted, MOST_RECORDS);
  return ids.map((id) => ({ name: titles.of(id), kind: `record of ${table.name}`, href: hrefOf("table", place, table.name, id) }));
}
