/** The search of the current table: the query, the results, and the map if the table has vectors. */
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { messageOf, type Place, tablePath } from "../api/client.ts";
import type { Marks } from "../map/marks.ts";
import { type FoundRecord, idAt } from "../map/messages.ts";
import { hexOf } from "../map/point-colors.ts";
import type { Nearest } from "../map/vector-map.ts";
import { CurrentTable } from "../parts/current-table.tsx";
import { Notice } from "../parts/notice.tsx";
import { useKept } from "../state/kept.ts";
import { connection } from "../state/page-session.ts";
import { hrefOf, route, tell } from "../state/route.ts";
import type { TableSchema } from "../state/server-content.ts";
import { titlesOf, useTitles } from "../state/titles.ts";
import { MapPanel } from "./map-panel.tsx";
import { nearestOther, pointedRecord, usePointed } from "./pointed.ts";
import { draftOf, firstDraft, paramsOf, queryParamsOf } from "./query-address.ts";
import { type Faults, type QueryDraft, QueryForm } from "./query-form.tsx";
import { Results, TermsPanel } from "./results.tsx";
import { FieldFault, runSearch, type SearchAnswer, vectorOfRecord } from "./run-search.ts";
import type { LoadedMap } from "./shown-map.ts";

export function SearchView(): JSX.Element {
  return <CurrentTable view={searchOf} />;
}

function searchOf(place: Place, table: TableSchema): JSX.Element {
  if (!hasText(table) && !table.columns.some(({ type }) => type === "vector"))
    return <Notice>The table {table.name} has no column with vectors or text, so there is nothing to search.</Notice>;
  return <TableSearch key={`${place.database}:${place.branch}/${table.name}`} place={place} table={table} />;
}

const TEXT_TYPES: readonly string[] = ["string", "text", "email", "multiple", "json"];
const hasText = (table: TableSchema): boolean => table.columns.some(({ type }) => TEXT_TYPES.includes(type));

/** What takes effect when it is chosen. Typed text does when it is submitted. */
const CHOICES = ["similarity", "column", "fuzziness", "method", "vectorWeight"] as const;
/** A shorter search needs no button that stops it. */
const BUSY_MS = 300;
/** Maximum number of records offered while typing. */
const MAX_SUGGESTIONS = 20;
/** People type faster than this. */
const TYPING_MS = 200;
/** Of the demo. */
const FIRST_RECORD = "rebeccapurple";

/** The record whose distance from the query is explained. */
interface Compared {
  readonly id: string;
  readonly column: string;
  readonly vector: ArrayLike<number>;
}

function TableSearch({ place, table }: { place: Place; table: TableSchema }): JSX.Element {
  const columns = table.columns.filter(({ type }) => type === "vector");
  // Of other columns it would be another search.
  const kept = `${tablePath(place, table.name)} ${table.columns.map(({ name }) => name)}`;
  const [draft, setDraft] = useKept(`query ${kept}`, () => firstDraft(table));
  const [faults, setFaults] = useState<Faults>({});
  const [answer, setAnswer] = useKept<SearchAnswer | undefined>(`found ${kept}`, () => undefined);
  const [isBusy, setBusy] = useState(false);
  const [waiting, setWaiting] = useState("");
  const [loaded, setLoaded] = useState<LoadedMap | undefined>(undefined);
  const [settled, setSettled] = useState<Nearest | undefined>(undefined);
  const { pointed, hovered, setHovered } = usePointed();
  const [onMap, setOnMap] = useState<ReadonlyMap<string, FoundRecord>>(new Map());
  const [suggestions, setSuggestions] = useState<readonly string[]>([]);
  const [chosen, setChosen] = useKept<string | undefined>(`chosen ${kept}`, () => undefined);
  const [compared, setCompared] = useState<Compared | undefined>(undefined);
  const running = useRef<AbortController | undefined>(undefined);
  /** What the answer is to, and whether it is being asked once more. */
  const searched = useRef<QueryDraft | undefined>(undefined);
  const refreshing = useRef<{ isWanted: boolean } | undefined>(undefined);
  const titles = titlesOf(place, table);
  const { params } = route.value;
  const told = JSON.stringify(queryParamsOf(params));
  /** The address whose search was run last. */
  const [shown, setShown] = useKept(`address ${kept}`, () => JSON.stringify({}));
  const isBegun = useRef(answer !== undefined || draft.words !== "" || told !== "{}");
  const dimension = columns.find(({ name }) => name === draft.column)?.vector?.dimension ?? 0;

  // A link, Back and a reload bring back what was searched for; so does coming back to a search that going elsewhere had ended.
  useEffect(() => {
    const isShown = told === shown && (answer !== undefined || running.current !== undefined);
    if (isShown || told === "{}") return;
    const wanted = draftOf(params, firstDraft(table));
    setDraft(wanted);
    void search(wanted);
  }, [told]);

  /** @param isCompletion  Back leads past it: the page began with it, or only a choice is another one. */
  async function search(wanted: QueryDraft, isCompletion = false): Promise<void> {
    stop();
    isBegun.current = true;
    tell(paramsOf(wanted, firstDraft(table)), isCompletion);
    setShown(JSON.stringify(queryParamsOf(route.peek().params)));
    const controller = new AbortController();
    running.current = controller;
    const timer = setTimeout(() => setBusy(true), BUSY_MS);
    controller.signal.addEventListener("abort", () => clearTimeout(timer));
    setFaults({});
    try {
      const found = await runSearch(place, table.name, wanted, setWaiting, controller.signal);
      if (controller.signal.aborted) return;
      searched.current = wanted;
      setAnswer(found);
      setChosen(found.hits.find(({ id }) => id !== found.point?.id)?.id);
    } catch (error) {
      if (controller.signal.aborted) return;
      setFaults(error instanceof FieldFault ? { [error.field]: error.message } : { general: messageOf(error) });
    }
    stop();
  }

  /** The search that is running, if there is one. */
  function stop(): void {
    running.current?.abort();
    setBusy(false);
    setWaiting("");
  }
  useEffect(() => () => running.current?.abort(), []);

  /** The same search of records that have changed. Whoever is away, or searches for something else, is not disturbed. */
  async function refresh(): Promise<void> {
    if (refreshing.current !== undefined) {
      refreshing.current.isWanted = true;
      return;
    }
    const own = { isWanted: true };
    refreshing.current = own;
    while (own.isWanted) {
      own.isWanted = false;
      const [wanted, controller] = [searched.current, new AbortController()];
      if (wanted === undefined || answer === undefined || running.current?.signal.aborted === false) break;
      running.current = controller;
      const found = await runSearch(place, table.name, wanted, () => {}, controller.signal).catch(() => undefined);
      // What it was may be gone: the answer stays.
      if (controller.signal.aborted) break;
      controller.abort();
      if (found !== undefined) setAnswer(found);
    }
    refreshing.current = undefined;
  }
  useEffect(() => {
    if (loaded !== undefined && loaded.changes > 0) void refresh();
  }, [loaded?.changes]);

  function change(part: Partial<QueryDraft>): void {
    const next = { ...draft, ...part };
    isBegun.current = true;
    setDraft(next);
    if (answer !== undefined && CHOICES.some((name) => part[name] !== undefined)) void search(next, true);
  }

  function pick(recordId: string, isCompletion = false): void {
    const next: QueryDraft = { ...draft, by: "record", recordId };
    setHovered(undefined);
    setDraft(next);
    void search(next, isCompletion);
  }

  // Begin with a result: the nearest records of some record. Not if the user has begun while the map was loaded.
  useEffect(() => {
    if (loaded === undefined || isBegun.current) return;
    const { ids, colors } = loaded.plane;
    if (colors.length === 0) return;
    void loaded.map.lookUp([FIRST_RECORD]).then(([known]) => {
      if (isBegun.current) return;
      pick(known === undefined ? idAt(ids, Math.floor(colors.length / 2)) : FIRST_RECORD, true);
    });
  }, [loaded]);

  // Where the query lies in the plane, what the page's own library finds for it, and where the server's hits
  // are.
  useEffect(() => {
    let isOver = false;
    setSettled(undefined);
    setOnMap(new Map());
    if (loaded === undefined || answer === undefined) return;
    const { hits, point, similarity } = answer;
    const ids = hits.map(({ id }) => id);
    void loaded.map.lookUp(ids).then((found) => {
      if (!isOver) setOnMap(new Map(found.flatMap((record, i) => (record === undefined ? [] : [[ids[i] as string, record] as const]))));
    });
    if (point !== undefined) {
      loaded.map.ask({
        source: { from: "vector", vector: point.vector },
        size: Math.max(1, hits.length),
        similarity,
        onAnswer: (nearest) => !isOver && setSettled(nearest),
      });
    }
    return () => {
      isOver = true;
    };
  }, [loaded, answer]);

  useEffect(() => {
    if (draft.by !== "record") return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      titles.find(draft.recordId.trim(), MAX_SUGGESTIONS, controller.signal).then(setSuggestions, () => undefined);
    }, TYPING_MS);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [titles, draft.by, draft.recordId]);

  const hits = hovered?.neighbors ?? answer?.hits ?? [];
  useTitles(place, table, [...hits.map(({ id }) => id), ...(answer?.point?.id === undefined ? [] : [answer.point.id])]);
  const nameOf = (id: string): string => titles.of(id);
  const pointName = answer?.point?.id === undefined ? (answer?.point?.name ?? "") : nameOf(answer.point.id);
  const pointedId = hovered === undefined ? undefined : pointedRecord(hovered);
  const why = hovered === undefined ? chosen : nearestOther(hovered);
  const query = hovered?.query ?? answer?.point?.vector;
  const queryName = hovered === undefined ? pointName : pointedId === undefined ? "this place" : nameOf(pointedId);

  useEffect(() => {
    if (why === undefined || query === undefined || (compared?.id === why && compared.column === draft.column)) return;
    let isOver = false;
    vectorOf(why).then(
      (vector) => !isOver && setCompared({ id: why, column: draft.column, vector }),
      () => !isOver && setCompared(undefined),
    );
    return () => {
      isOver = true;
    };
  }, [loaded, why, query === undefined, draft.column]);

  /** From the page if it has the vector, else from the server. */
  async function vectorOf(id: string): Promise<ArrayLike<number>> {
    const [record] = loaded === undefined ? [] : await loaded.map.lookUp([id]);
    return record?.vector ?? vectorOfRecord(place, table.name, id, draft.column);
  }

  async function compareWith(id: string): Promise<void> {
    setCompared({ id, column: draft.column, vector: await vectorOf(id) });
    setChosen(id);
  }

  const marks = useMemo(() => marksOf(answer, settled, onMap, chosen), [answer, settled, onMap, chosen]);

  // Recomputed only when it changes: the pointer over the map redraws the rest several times a second.
  const isAway = connection.value === "lost";
  const form = useMemo(
    () => (
      <QueryForm
        draft={draft}
        faults={faults}
        columns={columns.map(({ name, vector }) => [name, `${name} · ${vector?.dimension}`] as const)}
        hasText={hasText(table)}
        suggestions={suggestions}
        nameOf={(id) => titles.of(id)}
        isAway={isAway}
        isBusy={isBusy}
        waiting={waiting}
        onChange={change}
        onSubmit={() => void search(draft)}
        onStop={stop}
      />
    ),
    [draft, faults, isAway, isBusy, waiting, loaded, answer, suggestions],
  );

  function colorOf(id: string): string | undefined {
    const row = hovered?.neighbors.find((neighbor) => neighbor.id === id)?.row ?? onMap.get(id)?.row;
    // A record that is gone is in the results until they have been asked for once more.
    const color = row === undefined ? undefined : loaded?.plane.colors[row];
    return color === undefined ? undefined : hexOf(color);
  }

  return (
    <div class="search-grid">
      <div class="search-side">
        {form}
        {(answer !== undefined || hovered !== undefined) && (
          <Results
            title={
              hovered === undefined
                ? titleOf(answer as SearchAnswer, pointName)
                : pointedId === undefined
                  ? "Nearest to here"
                  : `Nearest to ${nameOf(pointedId)}`
            }
            queryId={hovered === undefined ? answer?.point?.id : pointedId}
            hits={hits}
            fusion={hovered === undefined ? answer?.fusion : undefined}
            said={
              hovered === undefined
                ? describe(answer as SearchAnswer, settled)
                : `found in this page in ${hovered.ms.toFixed(2)} ms; click to keep`
            }
            nameOf={nameOf}
            hrefOfRecord={(id) => hrefOf("search", place, table.name, id, params)}
            colorOf={colorOf}
            chosen={why}
            onChoose={setChosen}
            onMoreLike={columns.length === 0 ? undefined : pick}
          />
        )}
      </div>
      {columns.length > 0 && (
        <div class="search-main">
          <MapPanel
            place={place}
            table={table}
            column={draft.column}
            dimension={dimension}
            filter={answer?.filter}
            similarity={draft.similarity}
            marks={marks}
            pointed={pointed}
            nameOf={nameOf}
            onLoaded={setLoaded}
            onHover={setHovered}
            onPick={pick}
            onFilter={(ids) => {
              const next: QueryDraft = { ...draft, filterText: JSON.stringify({ id: { $any: ids } }) };
              setDraft(next);
              void search(next);
            }}
          />
          {query !== undefined && compared !== undefined && query.length === compared.vector.length && (
            <TermsPanel
              query={query}
              queryName={queryName}
              vector={compared.vector}
              vectorName={nameOf(compared.id)}
              similarity={draft.similarity}
              onCompare={compareWith}
            />
          )}
        </div>
      )}
    </div>
  );
}

/** Marks show what the server found. Records that the page has not loaded have no place. */
function marksOf(
  answer: SearchAnswer | undefined,
  settled: Nearest | undefined,
  onMap: ReadonlyMap<string, FoundRecord>,
  chosen: string | undefined,
): Marks | undefined {
  if (answer === undefined || (answer.point !== undefined && settled === undefined)) return undefined;
  const neighbors = answer.hits.flatMap(({ id, score }) => {
    const record = onMap.get(id);
    return record === undefined ? [] : [{ id, score, row: record.row }];
  });
  return { neighbors, from: settled, highlighted: chosen };
}

function titleOf({ point, words }: SearchAnswer, name: string): string {
  if (point === undefined) return `Results for “${words}”`;
  return words === "" ? `Nearest to ${name}` : `“${words}”, near ${name}`;
}

function describe(answer: SearchAnswer, settled: Nearest | undefined): string {
  const count = answer.totalCount.toLocaleString("en");
  const said = `${count} records ${answer.point === undefined ? "found" : "searched"} in ${answer.ms.toFixed(0)} ms`;
  if (settled === undefined) return said;
  const isSame =
    settled.neighbors.length === answer.hits.length &&
    settled.neighbors.every(({ id, score }, i) => id === answer.hits[i]?.id && score === answer.hits[i]?.score);
  return isSame ? `${said}; this page found the same to the last bit in ${settled.ms.toFixed(2)} ms` : said;
}
