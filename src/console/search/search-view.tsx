/** Search by example, beside the map that shows why these are the nearest. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import type { Place } from "../api/paths.ts";
import type { Nearest } from "../map/vector-map.ts";
import { Notice, Waiting } from "../parts/notice.tsx";
import { currentTable, type TableSchema, tables } from "../state/catalog.ts";
import { route } from "../state/route.ts";
import { connection } from "../state/session.ts";
import { type LoadedMap, MapPanel } from "./map-panel.tsx";
import { type Faults, type QueryDraft, QueryForm } from "./query-form.tsx";
import { Results } from "./results.tsx";
import { FieldFault, runSearch, type SearchAnswer } from "./run-search.ts";
import { TermsPanel } from "./terms-panel.tsx";

export function SearchView(): JSX.Element {
  const { place } = route.value;
  const table = currentTable.value;
  if (tables.value?.length === 0) return <Notice>This branch has no tables yet.</Notice>;
  if (place === undefined || table === undefined) return <Waiting what="Reading the schema …" />;
  const columns = table.columns.filter(({ type }) => type === "vector");
  if (columns.length === 0)
    return <Notice>The table {table.name} has no column of vectors, so there is nothing to search by nearness.</Notice>;
  return <TableSearch key={`${place.database}:${place.branch}/${table.name}`} place={place} table={table} />;
}

const startOf = (column: string): QueryDraft => ({
  column,
  similarity: "cosineSimilarity",
  size: "10",
  filterText: "",
  by: "record",
  recordId: "",
  vectorText: "",
});

/** Ids offered while typing, at most. */
const MAX_SUGGESTIONS = 50;

function TableSearch({ place, table }: { place: Place; table: TableSchema }): JSX.Element {
  const columns = table.columns.filter(({ type }) => type === "vector");
  const [draft, setDraft] = useState<QueryDraft>(() => ({
    ...startOf(columns[0]?.name ?? ""),
    similarity: isSmall(table) ? "l2" : "cosineSimilarity",
  }));
  const [faults, setFaults] = useState<Faults>({});
  const [answer, setAnswer] = useState<SearchAnswer | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [loaded, setLoaded] = useState<LoadedMap | undefined>(undefined);
  const [settled, setSettled] = useState<Nearest | undefined>(undefined);
  const [hovered, setHovered] = useState<Nearest | undefined>(undefined);
  const [chosen, setChosen] = useState<string | undefined>(undefined);
  const [chosenVector, setChosenVector] = useState<Float32Array | undefined>(undefined);
  const running = useRef<AbortController | undefined>(undefined);
  const dimension = columns.find(({ name }) => name === draft.column)?.vector?.dimension ?? 0;

  async function search(wanted: QueryDraft): Promise<void> {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    setBusy(true);
    setFaults({});
    try {
      const found = await runSearch(place, table.name, wanted, controller.signal);
      setAnswer(found);
      setChosen(found.hits.find(({ id }) => id !== found.queryId)?.id);
    } catch (error) {
      if (controller.signal.aborted) return;
      setFaults(error instanceof FieldFault ? { [error.field]: error.message } : { general: messageOf(error) });
    }
    setBusy(false);
  }

  function change(part: Partial<QueryDraft>): void {
    const next = { ...draft, ...part };
    setDraft(next);
    // What is chosen from a list is meant at once; what is typed when it is sent.
    if (answer !== undefined && (part.similarity !== undefined || part.column !== undefined)) void search(next);
  }

  function pick(recordId: string): void {
    const next: QueryDraft = { ...draft, by: "record", recordId };
    setHovered(undefined);
    setDraft(next);
    void search(next);
  }

  // The first sight is of something: the nearest of a record.
  useEffect(() => {
    if (loaded === undefined || answer !== undefined || draft.recordId !== "" || draft.by !== "record") return;
    const { ids } = loaded.plane;
    const first = ids.includes("rebeccapurple") ? "rebeccapurple" : ids[Math.floor(ids.length / 2)];
    if (first !== undefined) pick(first);
  }, [loaded]);

  // Where the query lies in the plane, and what the page's own library finds for it.
  useEffect(() => {
    setSettled(undefined);
    if (loaded === undefined || answer === undefined) return;
    loaded.map.ask({
      source: { from: "vector", vector: answer.queryVector },
      size: Math.max(1, answer.hits.length),
      similarity: answer.similarity,
      onAnswer: setSettled,
    });
  }, [loaded, answer]);

  const shown = hovered ?? withServersHits(settled, answer, loaded);
  const hits = hovered?.neighbors ?? answer?.hits ?? [];
  const why = hovered === undefined ? chosen : hits.find(({ id }) => hovered.source.from !== "record" || id !== hovered.source.id)?.id;
  const query = hovered?.query ?? answer?.queryVector;

  useEffect(() => {
    if (loaded === undefined || why === undefined) return setChosenVector(undefined);
    let isOver = false;
    void loaded.map.vectors([why]).then(([vector]) => !isOver && setChosenVector(vector));
    return () => {
      isOver = true;
    };
  }, [loaded, why]);

  // Made anew only when it changes: the pointer over the map draws the rest sixty times a second.
  const isStuck = isBusy || connection.value === "lost";
  const form = useMemo(
    () => (
      <QueryForm
        draft={draft}
        faults={faults}
        columns={columns.map(({ name, vector }) => [name, `${name} · ${vector?.dimension}`] as const)}
        suggestions={suggestionsOf(loaded, draft.recordId)}
        isBusy={isStuck}
        onChange={change}
        onSubmit={() => void search(draft)}
      />
    ),
    [draft, faults, isStuck, loaded, answer],
  );

  return (
    <div class="search-grid">
      <div class="search-side">
        {form}
        {(answer !== undefined || hovered !== undefined) && (
          <Results
            title={
              hovered === undefined
                ? `Nearest to ${answer?.queryName}`
                : hovered.source.from === "record"
                  ? `Nearest to ${hovered.source.id}`
                  : "Nearest to here"
            }
            queryId={hovered === undefined ? answer?.queryId : hovered.source.from === "record" ? hovered.source.id : undefined}
            hits={hits}
            said={
              hovered === undefined
                ? describe(answer as SearchAnswer, settled)
                : `found in this page in ${hovered.ms.toFixed(2)} ms; click to keep it`
            }
            colorOf={(id) => colorOf(loaded, id)}
            chosen={why}
            onChoose={setChosen}
            onMoreLike={pick}
          />
        )}
      </div>
      <div class="search-main">
        <MapPanel
          place={place}
          table={table}
          column={draft.column}
          dimension={dimension}
          filter={answer?.filter}
          similarity={draft.similarity}
          nearest={shown}
          chosen={why}
          onLoaded={setLoaded}
          onHover={setHovered}
          onPick={pick}
        />
        {query !== undefined && chosenVector !== undefined && why !== undefined && query.length === chosenVector.length && (
          <TermsPanel
            query={query}
            queryName={
              hovered === undefined ? (answer?.queryName ?? "") : hovered.source.from === "record" ? hovered.source.id : "this place"
            }
            vector={chosenVector}
            vectorName={why}
            similarity={draft.similarity}
          />
        )}
      </div>
    </div>
  );
}

/** In few dimensions distance is what one sees; in many, direction is what models mean. */
function isSmall(table: TableSchema): boolean {
  return table.columns.some(({ vector }) => vector !== undefined && vector.dimension <= 8);
}

/** What is drawn is what the server found; those that the page has not loaded have no place. */
function withServersHits(
  settled: Nearest | undefined,
  answer: SearchAnswer | undefined,
  loaded: LoadedMap | undefined,
): Nearest | undefined {
  if (settled === undefined || answer === undefined || loaded === undefined) return undefined;
  const neighbors = answer.hits.flatMap(({ id, score }) => {
    const row = loaded.rowOf.get(id);
    return row === undefined ? [] : [{ id, score, row }];
  });
  return { ...settled, neighbors };
}

function describe(answer: SearchAnswer, settled: Nearest | undefined): string {
  const said = `of ${answer.totalCount.toLocaleString("en")} records, by the server in ${answer.ms.toFixed(0)} ms`;
  if (settled === undefined) return said;
  const isSame =
    settled.neighbors.length === answer.hits.length &&
    settled.neighbors.every(({ id, score }, i) => id === answer.hits[i]?.id && score === answer.hits[i]?.score);
  return isSame ? `${said}; this page found the same to the last bit in ${settled.ms.toFixed(2)} ms` : said;
}

function colorOf(loaded: LoadedMap | undefined, id: string): string | undefined {
  const row = loaded?.rowOf.get(id);
  return row === undefined ? undefined : loaded?.legend.colors[row];
}

function suggestionsOf(loaded: LoadedMap | undefined, typed: string): readonly string[] {
  const found: string[] = [];
  for (const id of loaded?.plane.ids ?? []) {
    if (!id.includes(typed)) continue;
    found.push(id);
    if (found.length === MAX_SUGGESTIONS) break;
  }
  return found;
}
