/** The map beside the results, what can be chosen of it, and what stands around it. It follows the pointer. */
import type { ReadonlySignal } from "@preact/signals";
import type { Similarity } from "lodestone";
import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Place } from "../api/client.ts";
import { lazyView } from "../lazy-view.tsx";
import { captionsOf } from "../map/labels.ts";
import { type PlanePoint, rowsWithin } from "../map/lasso.ts";
import { MapCanvas } from "../map/map-canvas.tsx";
import type { Marks } from "../map/marks.ts";
import { idAt, type Layout, type Plane } from "../map/messages.ts";
import type { ShownMap } from "../map/picture.ts";
import type { Nearest } from "../map/vector-map.ts";
import { Select } from "../parts/form.tsx";
import { Fault } from "../parts/notice.tsx";
import { route } from "../state/route.ts";
import type { TableSchema } from "../state/server-content.ts";
import { LayoutLine, Loading, RestLine } from "./map-rest.tsx";
import { colorColumnsOf, mapSettingsOf, PLAIN, setMap, sizeColumnsOf } from "./map-settings.ts";
import { LegendLine, PictureMenu } from "./map-tools.tsx";
import { type LoadedMap, useShownMap } from "./shown-map.ts";

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
  nameOf: (id: string) => string;
  onLoaded: (loaded: LoadedMap | undefined) => void;
  onHover: (nearest: Nearest | undefined) => void;
  onPick: (id: string) => void;
  /** The search is to find these records only. */
  onFilter: (ids: readonly string[]) => void;
}

const LassoBar = lazyView(() => import("./lasso-bar.tsx"), "LassoBar");

const HOVER_RESULTS = 10;

const NOTHING_HIDDEN: ReadonlySet<number> = new Set();
const NO_LINE: readonly PlanePoint[] = [];

export function MapPanel(props: MapPanelProps): JSX.Element {
  const { place, table, column, dimension, similarity, marks, pointed, nameOf, onLoaded, onHover, onPick, onFilter } = props;
  const settings = mapSettingsOf(route.value.params, table);
  const { stage, progress, color, layout, share, fault, readAgain, ...map } = useShownMap(props, settings, onLoaded);
  const [hidden, setHidden] = useState(NOTHING_HIDDEN);
  const [lasso, setLasso] = useState(NO_LINE);
  const [isLassoing, setLassoing] = useState(false);
  const picture = useRef<(() => ShownMap) | undefined>(undefined);
  /** An answer may arrive after the pointer has left. */
  const isPointing = useRef(false);
  const choose = (part: Parameters<typeof setMap>[0]): void => setMap(part, table);

  const plane = stage.at === "shown" ? stage.loaded.plane : undefined;
  // A line is around places, a hidden colour is one of a column.
  useEffect(() => setLasso(NO_LINE), [plane?.load, plane?.fit]);
  useEffect(() => setHidden(NOTHING_HIDDEN), [color]);
  const { hasCaptions } = settings;
  const captions = useMemo(() => (plane === undefined || !hasCaptions ? [] : captionsOf(plane, hidden)), [plane, hidden, hasCaptions]);
  const enclosed = useMemo(() => {
    if (plane === undefined || lasso.length === 0) return [];
    return rowsWithin(lasso, plane.points).flatMap((row) => (hidden.has(plane.colors[row]!) ? [] : [idAt(plane.ids, row)]));
  }, [plane, lasso, hidden]);
  const sizeColumns = sizeColumnsOf(table);

  return (
    <section class="card map" aria-label="Map">
      <div class="map-head">
        <h2>Map</h2>
        {plane !== undefined && <p class="muted small">{describe(plane, layout)}</p>}
        <span class="spacer" />
        <Select
          label="Colour"
          value={color ?? PLAIN}
          options={[[PLAIN, "plain"], ...colorColumnsOf(table).map((name) => [name, name] as const)]}
          onChoose={(name) => choose({ color: name })}
        />
        {sizeColumns.length > 0 && (
          <Select
            label="Size"
            value={settings.sizes ?? ""}
            options={[["", "all the same"], ...sizeColumns.map((name) => [name, name] as const)]}
            onChoose={(name) => choose({ sizes: name === "" ? undefined : name })}
          />
        )}
        {plane !== undefined && (
          <>
            <Select
              label="Layout"
              value={settings.layout}
              options={[
                ["plane", "principal plane"],
                ["neighbors", "neighbours"],
              ]}
              onChoose={(wanted) => choose({ layout: wanted as Layout })}
            />
            <button type="button" aria-pressed={isLassoing} onClick={() => setLassoing(!isLassoing)} title="Or Shift and drag">
              Lasso
            </button>
            <PictureMenu name={`${table.name}.${column}`} count={plane.colors.length} shown={() => picture.current?.()} />
          </>
        )}
      </div>
      {fault !== "" && <Fault>{fault}</Fault>}
      {plane !== undefined && (
        <RestLine {...map} plane={plane} dimension={dimension} progress={progress} onLoad={map.load} onStop={map.stop} />
      )}
      {share !== undefined && <LayoutLine share={share} onStop={() => choose({ layout: "plane" })} />}
      {stage.at === "shown" && plane !== undefined ? (
        <>
          <MapCanvas
            plane={plane}
            hidden={hidden}
            captions={captions}
            lasso={lasso}
            isLassoing={isLassoing}
            shown={picture}
            marks={marks}
            pointed={pointed}
            nameOf={nameOf}
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
            onLasso={(line) => {
              setLasso(line);
              setLassoing(false);
            }}
          />
          {lasso.length > 0 && (
            <LassoBar
              place={place}
              table={table}
              ids={enclosed}
              onFilter={onFilter}
              onDeleted={readAgain}
              onClose={() => setLasso(NO_LINE)}
            />
          )}
          <LegendLine
            entries={plane.legend}
            hidden={hidden}
            onHide={setHidden}
            hasCaptions={hasCaptions}
            onCaptions={(isWanted) => choose({ hasCaptions: isWanted })}
          />
        </>
      ) : (
        <div class="map-frame empty-map">
          {stage.at === "failed" ? (
            <div class="ask">
              <Fault>{stage.message}</Fault>
              <button type="button" onClick={readAgain}>
                Try again
              </button>
            </div>
          ) : (
            <div class="ask">
              <Loading {...(progress ?? { rows: 0, of: 0 })} />
            </div>
          )}
        </div>
      )}
    </section>
  );
}

function describe({ colors, share, isPartial }: Plane, layout: Layout): string {
  const records = `${colors.length.toLocaleString("en")} records${isPartial ? " (the first of more)" : ""}`;
  if (layout === "neighbors") return `${records}, each near its nearest neighbours (UMAP); longer distances mean little`;
  return `${records}, along the two directions in which they differ most: ${Math.round(share * 100)} % of the variance`;
}
