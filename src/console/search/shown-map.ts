/**
 * What the map shows: a sample at once, the rest when it is asked for, in the colours, sizes and layout that are wanted.
 * Whatever is on its way, what is there stays and can be used.
 */
import type { Similarity } from "lodestone";
import { useEffect, useRef, useState } from "preact/hooks";
import { apiBase, call, messageOf, type Place, tablePath } from "../api/client.ts";
import { mostRows, pageBytes } from "../map/map-memory.ts";
import type { Layout, Plane } from "../map/messages.ts";
import { areColors } from "../map/point-colors.ts";
import { countVectors, VectorMap } from "../map/vector-map.ts";
import { useRoundsOf } from "../parts/form.tsx";
import { key } from "../state/page-session.ts";
import type { TableSchema } from "../state/server-content.ts";
import { type MapSettings, PLAIN, setMap } from "./map-settings.ts";

export interface LoadedMap {
  readonly map: VectorMap;
  readonly plane: Plane;
  /** How often records have changed since they were read. */
  readonly changes: number;
}

export type Stage =
  | { readonly at: "counting" }
  | { readonly at: "loading" }
  | { readonly at: "shown"; readonly loaded: LoadedMap }
  | { readonly at: "failed"; readonly message: string };

/** What is on its way: of the sample, or of the rest while the sample is shown. */
export interface Progress {
  readonly rows: number;
  readonly of: number;
}

interface MapSource {
  readonly place: Place;
  readonly table: TableSchema;
  readonly column: string;
  readonly dimension: number;
  readonly filter: unknown;
  readonly similarity: Similarity;
}

interface ShownMap {
  readonly stage: Stage;
  readonly progress: Progress | undefined;
  /** Records that have a vector. */
  readonly all: number;
  /** Those of a sample. */
  readonly sampled: number;
  /** How many of them the page may hold. */
  readonly fitting: number;
  /** The column that colours the points. */
  readonly color: string | undefined;
  /** Of what is shown; another one may be on its way. */
  readonly layout: Layout;
  /** Of a layout that is being computed: how much is done, 0 to 1. */
  readonly share: number | undefined;
  /** Why the rest, or other colours, sizes or places, could not be had. */
  readonly fault: string;
  readonly load: (rows: number) => void;
  /** Shows what has come so far. */
  readonly stop: () => void;
  readonly readAgain: () => void;
}

/** Of more records than this a sample is loaded, and the rest when it is asked for. */
const UNASKED_BYTES = 24 * 1024 * 1024;
const UNASKED_ROWS = 20_000;

/** What the shown map has, or has been asked for. */
interface Asked {
  readonly color: string | undefined;
  readonly sizes: string | undefined;
  readonly layout: Layout;
}

export function useShownMap(of: MapSource, settings: MapSettings, onLoaded: (loaded: LoadedMap | undefined) => void): ShownMap {
  const { place, table, column, dimension, filter, similarity } = of;
  const [stage, setStage] = useState<Stage>({ at: "counting" });
  const [progress, setProgress] = useState<Progress | undefined>(undefined);
  const [all, setAll] = useState(0);
  const [fitting, setFitting] = useState(0);
  const [guessed, setGuessed] = useState<string | undefined>(undefined);
  const [layout, setLayout] = useState<Layout>("plane");
  const [share, setShare] = useState<number | undefined>(undefined);
  const [fault, setFault] = useState("");
  const [attempt, setAttempt] = useState(0);
  const round = useRoundsOf(stage.at === "failed");
  const current = useRef<VectorMap | undefined>(undefined);
  /** What is shown, for what takes a while. */
  const latest = useRef<LoadedMap | undefined>(undefined);
  const asked = useRef<Asked>({ color: undefined, sizes: undefined, layout: "plane" });
  const sampled = Math.min(UNASKED_ROWS, Math.floor(UNASKED_BYTES / 4 / dimension));
  const color = settings.color === PLAIN ? undefined : (settings.color ?? guessed);
  const wanted = useRef<Asked>(asked.current);
  wanted.current = { color, sizes: settings.sizes, layout: settings.layout };

  useEffect(() => {
    const map = new VectorMap(
      (plane) => {
        if (current.current !== map || latest.current === undefined) return;
        setAll((rows) => rows + plane.colors.length - latest.current!.plane.colors.length);
        show({ map, plane, changes: latest.current.changes + 1 });
      },
      () => current.current === map && setAttempt((attempt) => attempt + 1),
    );
    current.current = map;
    latest.current = undefined;
    onLoaded(undefined);
    setStage({ at: "counting" });
    setProgress(undefined);
    setShare(undefined);
    setFault("");
    Promise.all([countVectors(place, table.name, column, filter), findColorColumn(place, table)]).then(
      ([rows, name]) => {
        if (current.current !== map) return;
        setAll(rows);
        setFitting(mostRows(dimension));
        setGuessed(name);
        if (settings.color === undefined) wanted.current = { ...wanted.current, color: name };
        void load(Math.min(rows, sampled));
      },
      (error: unknown) => current.current === map && setStage({ at: "failed", message: messageOf(error) }),
    );
    return () => {
      map.close();
      current.current = undefined;
    };
  }, [place.database, place.branch, table, column, dimension, JSON.stringify(filter) ?? "", attempt, round]);

  useEffect(catchUp, [color, settings.sizes, settings.layout]);

  const source = () => ({ tableUrl: apiBase() + tablePath(place, table.name), key: key.value, column, filter });

  async function load(rows: number): Promise<void> {
    const map = current.current;
    if (map === undefined) return;
    setFault("");
    setStage((old) => (old.at === "shown" ? old : { at: "loading" }));
    setProgress({ rows: latest.current?.plane.colors.length ?? 0, of: rows });
    try {
      const request = { ...source(), colorColumn: wanted.current.color, dimension, limit: rows, memoryBytes: pageBytes() };
      const come = await map.load(request, (done) => current.current === map && setProgress({ rows: done, of: rows }));
      if (current.current !== map) return;
      if (come.isFull) setFitting(come.plane.colors.length);
      setFault(come.fault ?? "");
      setLayout("plane");
      setShare(undefined);
      asked.current = { color: come.colorColumn, sizes: undefined, layout: "plane" };
      show({ map, plane: come.plane, changes: latest.current?.changes ?? 0 });
      catchUp();
    } catch (error) {
      if (current.current !== map) return;
      if (latest.current === undefined) setStage({ at: "failed", message: messageOf(error) });
      else setFault(messageOf(error));
    }
    setProgress(undefined);
  }

  function show(loaded: LoadedMap): void {
    latest.current = loaded;
    setStage({ at: "shown", loaded });
    onLoaded(loaded);
  }

  /** Asks for what is wanted and not shown. */
  function catchUp(): void {
    if (latest.current === undefined) return;
    const { color, sizes, layout } = asked.current;
    asked.current = wanted.current;
    if (color !== wanted.current.color) void recolor();
    if (sizes !== wanted.current.sizes) void resize();
    if (layout !== wanted.current.layout) void layOut();
  }

  /**
   * Adds to what is shown, once it is there.
   * @param isStill  whether it is still what was asked for: a load, or another choice, may have come before it.
   */
  async function add(read: (map: VectorMap) => Promise<Partial<Plane> | undefined>, isStill: (now: Asked) => boolean): Promise<boolean> {
    const { map, plane } = latest.current as LoadedMap;
    const isCurrent = (): boolean => current.current === map && latest.current?.plane.load === plane.load && isStill(asked.current);
    setFault("");
    try {
      const part = await read(map);
      if (part === undefined || !isCurrent()) return false;
      // The rest of it may be another one by now.
      const { changes, plane: now } = latest.current as LoadedMap;
      show({ map, plane: { ...now, ...part }, changes });
      return true;
    } catch (error) {
      if (isCurrent()) setFault(messageOf(error));
      return false;
    }
  }

  /** The vectors stay; only the values of the column are read. */
  async function recolor(): Promise<void> {
    const { color } = asked.current;
    await add(
      (map) => map.color({ ...source(), colorColumn: color }),
      (now) => now.color === color,
    );
  }

  async function resize(): Promise<void> {
    const { sizes } = asked.current;
    await add(
      async (map) => ({ sizes: sizes === undefined ? undefined : await map.size({ ...source(), sizeColumn: sizes }) }),
      (now) => now.sizes === sizes,
    );
  }

  /** The picture stays until the other one is there. The principal plane ends a layout that is being computed. */
  async function layOut(): Promise<void> {
    const { layout } = asked.current;
    const isStill = (now: Asked): boolean => now.layout === layout;
    const { load } = (latest.current as LoadedMap).plane;
    setShare(layout === "plane" ? undefined : 0);
    const isDone = await add((map) => map.layOut(layout, similarity, (done) => isStill(asked.current) && setShare(done)), isStill);
    if (isDone) setLayout(layout);
    if (latest.current?.plane.load !== load || !isStill(asked.current)) return;
    setShare(undefined);
    if (isDone) return;
    asked.current = { ...asked.current, layout: "plane" };
    setMap({ layout: "plane" }, table);
  }

  return {
    stage,
    progress,
    all,
    sampled,
    fitting,
    color,
    layout,
    share,
    fault,
    load: (rows) => void load(rows),
    stop: () => current.current?.stop(),
    readAgain: () => setAttempt((attempt) => attempt + 1),
  };
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
