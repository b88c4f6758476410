/**
 * The picture: points below, the query and its nearest above. What is under the pointer goes straight from the
 * signal to the upper canvas, once a frame: nothing else on the page is rendered again for it. Ctrl with the wheel and
 * pinch zoom (the wheel alone scrolls the page), dragging moves, Shift and dragging draws a line around points.
 */
import type { ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { currentTheme } from "../state/theme.ts";
import { drawnRadiusFor, drawPoints, radiusFor } from "./draw-points.ts";
import { type Caption, drawCaptions, type Ink } from "./labels.ts";
import type { PlanePoint } from "./lasso.ts";
import { drawNearest, type Marks } from "./marks.ts";
import { idAt, type Plane } from "./messages.ts";
import type { ShownMap } from "./picture.ts";
import { sizeLegend } from "./point-sizes.ts";
import { SizeLegendBox } from "./size-legend.tsx";
import { Viewport } from "./viewport.ts";

interface MapCanvasProps {
  plane: Plane;
  /** Colours that are left out. */
  hidden: ReadonlySet<number>;
  captions: readonly Caption[];
  /** The line that was drawn around points. */
  lasso: readonly PlanePoint[];
  /** Whether dragging draws it, also without Shift. */
  isLassoing: boolean;
  /** Receives the function that says what is shown, for a picture to keep. */
  shown: { current: (() => ShownMap) | undefined };
  marks: Marks | undefined;
  /** While the pointer is over the map these are drawn instead, as often as there are frames. */
  pointed: ReadonlySignal<Marks | undefined>;
  nameOf: (id: string) => string;
  /** The pointer is at a record, or at a place of the plane between them. */
  onPoint: (at: { id: string } | { x: number; y: number }) => void;
  onLeave: () => void;
  /** A record was clicked, or Enter pressed on it. */
  onPick: (id: string) => void;
  onLasso: (line: readonly PlanePoint[]) => void;
}

/** CSS pixels within which the pointer is at a record. */
const REACH = 12;
const REACH_OF_DRAG = 4;
const KEY_STEP = 16;
const KEY_ZOOM = 1.25;
const WHEEL_RATE = 0.0015;

const HINT_MS = 1_500;
/** CSS pixels between the points of the line. */
const LASSO_STEP = 4;
const NO_LINE: readonly PlanePoint[] = [];

export function MapCanvas(props: MapCanvasProps): JSX.Element {
  const { plane, hidden, captions, lasso, isLassoing, shown, marks, pointed, nameOf, onPoint, onLeave, onPick, onLasso } = props;
  const frame = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; y: number; moved: boolean; isLasso: boolean } | undefined>(undefined);
  /** The line while it is being drawn; more points of it than renderings may come. */
  const drawing = useRef<readonly PlanePoint[]>(NO_LINE);
  const [line, setLine] = useState(NO_LINE);
  const [isHinting, setHinting] = useState(false);
  const probe = useRef<{ x: number; y: number } | undefined>(undefined);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [viewport, setViewport] = useState<Viewport | undefined>(undefined);
  // Read once: in a frame it would force the page's styles to be computed early.
  const ink = useMemo(inkOf, [currentTheme()]);
  const { points, colors } = plane;
  const factors = plane.sizes?.factors;
  const side = Math.min(size.width, size.height);
  const radius = radiusFor(colors.length, side);
  const legend = plane.sizes && sizeLegend(plane.sizes, drawnRadiusFor(colors.length, side));
  // Drawn again when the names of the marked records have arrived.
  const names = marks?.neighbors.map(({ id }) => nameOf(id)).join("\n");
  const ratio = Math.min(2, devicePixelRatio || 1);

  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (size.width > 0) setViewport(Viewport.around(points, size.width, size.height));
  }, [plane.load, plane.fit, size.width, size.height]);
  useEffect(() => {
    const context = below.current?.getContext("2d");
    if (context && viewport !== undefined) drawPoints({ context, points, colors, factors, hidden, viewport, ratio }, ink.line);
  }, [viewport, points, colors, factors, hidden, ink, ratio]);
  useEffect(() => {
    const context = above.current?.getContext("2d");
    if (!context) return;
    let frameAsked: number | undefined;
    function draw(): void {
      frameAsked = undefined;
      const drawn = pointed.peek() ?? marks;
      context!.setTransform(1, 0, 0, 1, 0, 0);
      context!.clearRect(0, 0, context!.canvas.width, context!.canvas.height);
      if (viewport === undefined) return;
      const taken = drawCaptions(context!, captions, viewport, ratio, ink);
      if (drawn !== undefined) drawNearest(context!, points, factors, drawn, viewport, ratio, ink, radius, nameOf, taken);
    }
    draw();
    const stop = pointed.subscribe(() => {
      frameAsked ??= requestAnimationFrame(draw);
    });
    return () => {
      stop();
      if (frameAsked !== undefined) cancelAnimationFrame(frameAsked);
    };
  }, [viewport, marks, pointed, ink, ratio, points, colors, factors, captions, names]);
  useEffect(() => {
    if (!isHinting) return;
    const timer = setTimeout(() => setHinting(false), HINT_MS);
    return () => clearTimeout(timer);
  }, [isHinting]);
  if (viewport !== undefined)
    shown.current = () => ({
      canvases: [below.current as HTMLCanvasElement, above.current as HTMLCanvasElement],
      ink,
      ratio,
      points,
      colors,
      sizes: plane.sizes,
      hidden,
      viewport,
      ...size,
    });

  function at(x: number, y: number): { id: string } | { x: number; y: number } | undefined {
    if (viewport === undefined) return undefined;
    const row = rowNear(plane, hidden, viewport, x, y);
    return row === undefined ? { x: viewport.fromX(x), y: viewport.fromY(y) } : { id: idAt(plane.ids, row) };
  }

  function point(x: number, y: number): void {
    probe.current = { x, y };
    const found = at(x, y);
    if (found !== undefined) onPoint(found);
  }

  function pick(x: number, y: number): void {
    const found = at(x, y);
    if (found !== undefined && "id" in found) onPick(found.id);
  }

  function pressKey(event: KeyboardEvent): void {
    const from = probe.current ?? { x: size.width / 2, y: size.height / 2 };
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (step !== undefined) point(from.x + step[0]! * KEY_STEP, from.y + step[1]! * KEY_STEP);
    else if (event.key === "Enter") pick(from.x, from.y);
    else if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? KEY_ZOOM : 1 / KEY_ZOOM, from);
    else if (event.key === "Escape") reset();
    else return;
    event.preventDefault();
  }

  /** @param at  stays where it is; undefined: the middle. */
  function zoom(factor: number, at = { x: size.width / 2, y: size.height / 2 }): void {
    setViewport(viewport?.zoomed(factor, at.x, at.y));
  }

  function reset(): void {
    setViewport(Viewport.around(points, size.width, size.height));
    onLeave();
  }

  function drawLine(next: readonly PlanePoint[]): void {
    drawing.current = next;
    setLine(next);
  }

  function move(event: PointerEvent): void {
    const from = drag.current;
    const [x, y] = [event.offsetX, event.offsetY];
    const reach = from?.isLasso && from.moved ? LASSO_STEP : REACH_OF_DRAG;
    const isDragged = from !== undefined && (from.moved || Math.hypot(x - from.x, y - from.y) > reach);
    if (!isDragged) {
      if (from === undefined) point(x, y);
      return;
    }
    drag.current = { ...from, x, y, moved: true };
    if (!from.isLasso) setViewport(viewport?.moved(x - from.x, y - from.y));
    else if (viewport !== undefined) {
      const inPlane = (pixelX: number, pixelY: number): PlanePoint => ({ x: viewport.fromX(pixelX), y: viewport.fromY(pixelY) });
      drawLine([...(from.moved ? drawing.current : [inPlane(from.x, from.y)]), inPlane(x, y)]);
    }
  }

  const around = line.length > 0 ? line : lasso;
  return (
    <div class="map-box">
      <div
        ref={frame}
        class="map-frame"
        role="application"
        tabIndex={0}
        aria-label={`Map of ${colors.length} records. Arrow keys move over it, Enter makes the record there the query, plus and minus zoom, Escape shows all. The list of results says the same in words.`}
        onKeyDown={pressKey}
        onPointerDown={(event) => {
          drag.current = { x: event.offsetX, y: event.offsetY, moved: false, isLasso: isLassoing || event.shiftKey };
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerMove={move}
        onPointerUp={(event) => {
          if (drag.current?.moved === false) pick(event.offsetX, event.offsetY);
          else if (drawing.current.length > 2) onLasso(drawing.current);
          drawLine(NO_LINE);
          drag.current = undefined;
        }}
        onPointerLeave={onLeave}
        onWheel={(event) => {
          if (!event.ctrlKey && !event.metaKey) {
            setHinting(true);
            return;
          }
          event.preventDefault();
          zoom(Math.exp(-event.deltaY * WHEEL_RATE), { x: event.offsetX, y: event.offsetY });
        }}
        onDblClick={reset}
      >
        <canvas ref={below} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} />
        <canvas ref={above} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} />
        {around.length > 0 && viewport !== undefined && (
          <svg class="lasso" aria-hidden="true">
            <polygon points={around.map(({ x, y }) => `${viewport.toX(x)},${viewport.toY(y)}`).join(" ")} />
          </svg>
        )}
        {isHinting && (
          <p class="map-hint" aria-hidden="true">
            Ctrl or ⌘ with the wheel zooms
          </p>
        )}
      </div>
      {legend !== undefined && <SizeLegendBox legend={legend} />}
      <div class="map-zoom" role="group" aria-label="Zoom">
        <button type="button" aria-label="Zoom in" onClick={() => zoom(KEY_ZOOM)}>
          +
        </button>
        <button type="button" aria-label="Zoom out" onClick={() => zoom(1 / KEY_ZOOM)}>
          −
        </button>
        <button type="button" onClick={reset}>
          All
        </button>
      </div>
    </div>
  );
}

/** The nearest point within reach; of equals the first. A pass over 100,000 takes a fraction of a millisecond. */
function rowNear({ points, colors }: Plane, hidden: ReadonlySet<number>, viewport: Viewport, x: number, y: number): number | undefined {
  const planeX = viewport.fromX(x);
  const planeY = viewport.fromY(y);
  let best: number | undefined;
  let least = (REACH / viewport.scale) ** 2;
  for (let i = 0; i < points.length; i += 2) {
    const distance = (points[i]! - planeX) ** 2 + (points[i + 1]! - planeY) ** 2;
    if (distance >= least || hidden.has(colors[i / 2]!)) continue;
    least = distance;
    best = i / 2;
  }
  return best;
}

function inkOf(): Ink & { line: string } {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string): string => style.getPropertyValue(name).trim();
  return { text: read("--text"), ground: read("--map-ground"), accent: read("--accent"), line: read("--point-line") };
}
