/** The map beside the results: asks before it loads much, shows its progress, then follows the pointer. */
import { type ReadonlySignal, useSignal } from "@preact/signals";
import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { apiBase, call, messageOf, type Place, tablePath } from "../api/client.ts";
import type { Marks } from "../map/drawing.ts";
import { MapCanvas } from "../map/map-canvas.tsx";
import type { Plane } from "../map/messages.ts";
import { areColors, type LegendEntry } from "../map/point-colors.ts";
import { countVectors, type Nearest, VectorMap } from "../map/vector-map.ts";
import { Select, useRoundsOf } from "../parts/form.tsx";
import { Swatch } from "../parts/icons.tsx";
import { Fault } from "../parts/notice.tsx";
import { key } from "../state/page-session.ts";
import type { TableSchema } from "../state/server-content.ts";

export interface LoadedMap {
  readonly map: VectorMap;
  readonly plane: Plane;
}

interface MapPanelProps {
  place: Place;
  table: TableSchema;
  column: string;
  dimension: number;
  filter: unknown;
  similarity: Similarity;
  marks: Marks | undefined;
  /** The marks of the answer to where the pointer is. */
  pointed: ReadonlySignal<Marks | undefined>;
  onLoaded: (loaded: LoadedMap | undefined) => void;
  onHover: (nearest: Nearest | undefined) => void;
  onPick: (id: string) => void;
}

/** More records than this are loaded only after a question. */
const UNASKED_BYTES = 24 * 1024 * 1024;
const UNASKED_ROWS = 20_000;
const HOVER_RESULTS = 10;

type Stage =
  | { readonly at: "counting" }
  | { readonly at: "asking"; readonly rows: number }
  | { readonly at: "loading"; readonly rows: number; readonly of: number }
  | { readonly at: "shown"; readonly loaded: LoadedMap }
  | { readonly at: "failed"; readonly message: string };

export function MapPanel(props: MapPanelProps): JSX.Element {
  const { place, table, column, dimension, filter, similarity, marks, pointed, onLoaded, onHover, onPick } = props;
  const [stage, setStage] = useState<Stage>({ at: "counting" });
  const [colorColumn, setColorColumn] = useState<string | undefined>(undefined);
  /** The column that is chosen while the map is loaded by another one. */
  const wantedColor = useRef<string | undefined>(undefined);
  const [colorFault, setColorFault] = useState("");
  const [isSettled, setSettled] = useState(false);
  const [attempt, setAttempt] = useState(0);
  const round = useRoundsOf(stage.at === "failed");
  const current = useRef<VectorMap | undefined>(undefined);
  /** An answer may arrive after the pointer has left. */
  const isPointing = useRef(false);
  const filterKey = JSON.stringify(filter) ?? "";
  const candidates = table.columns.filter(({ type }) => type === "string" || type === "bool" || type === "int");

  useEffect(() => {
    let isOver = false;
    setSettled(false);
    findColorColumn(place, table).then(
      (name) => {
        if (isOver) return;
        setColorColumn(name);
        wantedColor.current = name;
        setSettled(true);
      },
      (error: unknown) => !isOver && setStage({ at: "failed", message: messageOf(error) }),
    );
    return () => {
      isOver = true;
    };
  }, [place.database, place.branch, table, attempt, round]);

  useEffect(() => {
    if (!isSettled) return;
    let isOver = false;
    onLoaded(undefined);
    setStage({ at: "counting" });
    countVectors(place, table.name, column, filter).then(
      (rows) => {
        if (isOver) return;
        if (rows > UNASKED_ROWS || rows * dimension * 4 > UNASKED_BYTES) setStage({ at: "asking", rows });
        else void load(rows);
      },
      (error: unknown) => !isOver && setStage({ at: "failed", message: messageOf(error) }),
    );
    return () => {
      isOver = true;
      current.current?.close();
      current.current = undefined;
    };
  }, [isSettled, place.database, place.branch, table, column, dimension, filterKey, attempt]);

  async function load(rows: number): Promise<void> {
    const map = new VectorMap();
    current.current?.close();
    current.current = map;
    setStage({ at: "loading", rows: 0, of: rows });
    const request = { ...source(), dimension, limit: rows };
    try {
      const plane = await map.load(request, (done) => {
        if (current.current === map) setStage({ at: "loading", rows: done, of: rows });
      });
      if (current.current !== map) return;
      show({ map, plane });
      if (wantedColor.current !== request.colorColumn) void recolor({ map, plane });
    } catch (error) {
      if (current.current === map) setStage({ at: "failed", message: messageOf(error) });
    }
  }

  function show(loaded: LoadedMap): void {
    setStage({ at: "shown", loaded });
    onLoaded(loaded);
  }

  const source = () => ({
    tableUrl: apiBase() + tablePath(place, table.name),
    key: key.value,
    column,
    colorColumn: wantedColor.current,
    filter,
  });

  /** The vectors stay; only the values of the column are read. */
  async function recolor({ map, plane }: LoadedMap): Promise<void> {
    const request = source();
    setColorFault("");
    try {
      const { colors, legend } = await map.color(request);
      if (current.current === map && wantedColor.current === request.colorColumn) show({ map, plane: { ...plane, colors, legend } });
    } catch (error) {
      if (current.current === map) setColorFault(messageOf(error));
    }
  }

  function chooseColor(name: string | undefined): void {
    setColorColumn(name);
    wantedColor.current = name;
    if (stage.at === "shown") void recolor(stage.loaded);
  }

  return (
    <section class="card map" aria-label="Map">
      <div class="map-head">
        <h2>Map</h2>
        {stage.at === "shown" && <p class="muted small">{describe(stage.loaded.plane)}</p>}
        <span class="spacer" />
        <Select
          label="Colour"
          value={colorColumn ?? ""}
          options={[["", "plain"], ...candidates.map(({ name }) => [name, name] as const)]}
          onChoose={(name) => chooseColor(name === "" ? undefined : name)}
        />
      </div>
      {colorFault !== "" && <Fault>{colorFault}</Fault>}
      {stage.at === "shown" ? (
        <>
          <MapCanvas
            plane={stage.loaded.plane}
            marks={marks}
            pointed={pointed}
            onPoint={(at) => {
              isPointing.current = true;
              stage.loaded.map.ask({
                source: "id" in at ? { from: "record", id: at.id } : { from: "plane", ...at },
                size: HOVER_RESULTS,
                similarity,
                onAnswer: (found) => isPointing.current && onHover(found),
              });
            }}
            onLeave={() => {
              isPointing.current = false;
              onHover(undefined);
            }}
            onPick={onPick}
          />
          <LegendLine entries={stage.loaded.plane.legend} />
        </>
      ) : (
        <div class="map-frame empty-map">
          <Before stage={stage} dimension={dimension} onLoad={(rows) => void load(rows)} onTryAgain={() => setAttempt(attempt + 1)} />
        </div>
      )}
    </section>
  );
}

const describe = ({ colors, share, isPartial }: Plane): string =>
  `${colors.length.toLocaleString("en")} records${isPartial ? " (the first of more)" : ""} in their two principal directions: ${Math.round(share * 100)} % of the spread`;

interface BeforeProps {
  stage: Stage;
  dimension: number;
  onLoad: (rows: number) => void;
  onTryAgain: () => void;
}

function Before({ stage, dimension, onLoad, onTryAgain }: BeforeProps): JSX.Element {
  if (stage.at === "failed") {
    return (
      <div class="ask">
        <Fault>{stage.message}</Fault>
        <button type="button" onClick={onTryAgain}>
          Try again
        </button>
      </div>
    );
  }
  if (stage.at === "asking") {
    const megabytes = (rows: number): string => `${Math.ceil((rows * dimension * 5) / 1e6).toLocaleString("en")} MB`;
    const some = Math.min(stage.rows, UNASKED_ROWS, Math.floor(UNASKED_BYTES / 4 / dimension));
    return (
      <div class="ask">
        <p>
          The map holds the vectors in this page. All {stage.rows.toLocaleString("en")} take {megabytes(stage.rows)} of memory.
        </p>
        <button type="button" class="primary" onClick={() => onLoad(some)}>
          Load {some.toLocaleString("en")} ({megabytes(some)})
        </button>
        <button type="button" onClick={() => onLoad(stage.rows)}>
          Load all
        </button>
      </div>
    );
  }
  const [rows, of] = stage.at === "loading" ? [stage.rows, stage.of] : [0, 1];
  return (
    <div class="ask" role="status">
      <p>{stage.at === "loading" ? `Loading ${rows.toLocaleString("en")} of ${of.toLocaleString("en")} vectors …` : "Counting …"}</p>
      <progress max={Math.max(1, of)} value={rows} aria-label="Vectors loaded" />
    </div>
  );
}

function LegendLine({ entries }: { entries: readonly LegendEntry[] }): JSX.Element | null {
  if (entries.length === 0) return null;
  return (
    <ul class="legend" aria-label="Colours">
      {entries.map(({ value, color }) => (
        <li key={value}>
          <Swatch color={color} />
          <bdi>{value}</bdi>
        </li>
      ))}
    </ul>
  );
}

const PROBED_ROWS = 20;

/** A column whose first values are all colours, if there is one. */
async function findColorColumn(place: Place, table: TableSchema): Promise<string | undefined> {
  const names = table.columns.filter(({ type }) => type === "string").map(({ name }) => name);
  if (names.length === 0) return undefined;
  const { records } = await call<{ records: Record<string, unknown>[] }>("POST", `${tablePath(place, table.name)}/query`, {
    columns: names,
    page: { size: PROBED_ROWS },
  });
  return names.find((name) => areColors(records.map((record) => record[name])));
}

const LIST_MS = 80;

interface Pointed {
  /** Of the latest answer; undefined when the pointer is elsewhere. */
  readonly pointed: ReadonlySignal<Marks | undefined>;
  /** The same, updated as often as the list. */
  readonly hovered: Nearest | undefined;
  readonly setHovered: (nearest: Nearest | undefined) => void;
}

/**
 * The records nearest to the pointer on the map. The map draws every answer. The list and the terms, which are many
 * elements and are read by people, take one answer per LIST_MS, and always the last. So a frame costs two canvases.
 */
export function usePointed(): Pointed {
  const pointed = useSignal<Marks | undefined>(undefined);
  const [hovered, show] = useState<Nearest | undefined>(undefined);
  const paced = useMemo(() => new PacedValue(show), []);
  useEffect(() => () => paced.stop(), []);
  return {
    pointed,
    hovered,
    setHovered(nearest) {
      pointed.value = nearest && { neighbors: nearest.neighbors, from: nearest, highlighted: nearestOther(nearest) };
      paced.take(nearest);
    },
  };
}

/** The record under the pointer, if there is one. */
export const pointedRecord = ({ source }: Nearest): string | undefined => (source.from === "record" ? source.id : undefined);

/** The nearest that is not the record under the pointer itself. */
export const nearestOther = (nearest: Nearest): string | undefined => nearest.neighbors.find(({ id }) => id !== pointedRecord(nearest))?.id;

/** Passes values on: the first at once, then at most one in LIST_MS, and none (undefined) at once. */
class PacedValue {
  readonly #show: (value: Nearest | undefined) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #waiting: Nearest | undefined;

  constructor(show: (value: Nearest | undefined) => void) {
    this.#show = show;
  }

  take(value: Nearest | undefined): void {
    if (value !== undefined && this.#timer !== undefined) {
      this.#waiting = value;
      return;
    }
    this.stop();
    this.#show(value);
    if (value !== undefined) this.#timer = setTimeout(() => this.#goOn(), LIST_MS);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#waiting = undefined;
  }

  #goOn(): void {
    this.#timer = undefined;
    if (this.#waiting !== undefined) this.take(this.#waiting);
  }
}
