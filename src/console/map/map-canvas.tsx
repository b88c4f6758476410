/**
 * The picture: points below, the query and its nearest above. What is under the pointer goes straight from the
 * signal to the upper canvas, once a frame: nothing else on the page is rendered again for it. Wheel and pinch
 * zoom, dragging moves.
 */
import type { ReadonlySignal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { currentTheme } from "../state/theme.ts";
import { drawNearest, drawPoints, type Ink, type Marks, radiusFor, Viewport } from "./drawing.ts";
import { idAt, type Plane } from "./messages.ts";

interface MapCanvasProps {
  plane: Plane;
  marks: Marks | undefined;
  /** While the pointer is over the map these are drawn instead, as often as there are frames. */
  pointed: ReadonlySignal<Marks | undefined>;
  /** The pointer is at a record, or at a place of the plane between them. */
  onPoint: (at: { id: string } | { x: number; y: number }) => void;
  onLeave: () => void;
  /** A record was clicked, or Enter pressed on it. */
  onPick: (id: string) => void;
}

/** CSS pixels within which the pointer is at a record. */
const REACH = 12;
const KEY_STEP = 16;
const WHEEL_RATE = 0.0015;

export function MapCanvas({ plane, marks, pointed, onPoint, onLeave, onPick }: MapCanvasProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLCanvasElement>(null);
  const above = useRef<HTMLCanvasElement>(null);
  const drag = useRef<{ x: number; y: number; moved: boolean } | undefined>(undefined);
  const probe = useRef<{ x: number; y: number } | undefined>(undefined);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [viewport, setViewport] = useState<Viewport | undefined>(undefined);
  // Read once: in a frame it would force the page's styles to be computed early.
  const ink = useMemo(inkOf, [currentTheme()]);
  const { points, colors } = plane;
  const ratio = Math.min(2, devicePixelRatio || 1);

  useLayoutEffect(() => {
    const element = frame.current as HTMLDivElement;
    const observer = new ResizeObserver(() => setSize({ width: element.clientWidth, height: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => {
    if (size.width > 0) setViewport(Viewport.around(points, size.width, size.height));
  }, [plane, size.width, size.height]);
  useEffect(() => {
    const context = below.current?.getContext("2d");
    if (context && viewport !== undefined) drawPoints({ context, points, colors, viewport, ratio }, ink.line);
  }, [viewport, colors, ink, ratio]);
  useEffect(() => {
    const context = above.current?.getContext("2d");
    if (!context) return;
    let frameAsked: number | undefined;
    function draw(): void {
      frameAsked = undefined;
      const shown = pointed.peek() ?? marks;
      context!.setTransform(1, 0, 0, 1, 0, 0);
      context!.clearRect(0, 0, context!.canvas.width, context!.canvas.height);
      if (shown === undefined || viewport === undefined) return;
      drawNearest(context!, points, shown, viewport, ratio, ink, radiusFor(colors.length, Math.min(size.width, size.height)));
    }
    draw();
    const stop = pointed.subscribe(() => {
      frameAsked ??= requestAnimationFrame(draw);
    });
    return () => {
      stop();
      if (frameAsked !== undefined) cancelAnimationFrame(frameAsked);
    };
  }, [viewport, marks, pointed, ink, ratio, colors]);

  function at(x: number, y: number): { id: string } | { x: number; y: number } | undefined {
    if (viewport === undefined) return undefined;
    const row = rowNear(points, viewport, x, y);
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
    else if (event.key === "+" || event.key === "-") setViewport(viewport?.zoomed(event.key === "+" ? 1.25 : 0.8, from.x, from.y));
    else if (event.key === "Escape") reset();
    else return;
    event.preventDefault();
  }

  function reset(): void {
    setViewport(Viewport.around(points, size.width, size.height));
    onLeave();
  }

  return (
    <div
      ref={frame}
      class="map-frame"
      role="application"
      tabIndex={0}
      aria-label={`Map of ${colors.length} records. Arrow keys move over it, Enter makes the record there the query, plus and minus zoom, Escape shows all. The list of results says the same in words.`}
      onKeyDown={pressKey}
      onPointerDown={(event) => {
        drag.current = { x: event.offsetX, y: event.offsetY, moved: false };
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        const from = drag.current;
        if (from !== undefined && (from.moved || Math.hypot(event.offsetX - from.x, event.offsetY - from.y) > 4)) {
          setViewport(viewport?.moved(event.offsetX - from.x, event.offsetY - from.y));
          drag.current = { x: event.offsetX, y: event.offsetY, moved: true };
          return;
        }
        point(event.offsetX, event.offsetY);
      }}
      onPointerUp={(event) => {
        if (drag.current?.moved === false) pick(event.offsetX, event.offsetY);
        drag.current = undefined;
      }}
      onPointerLeave={onLeave}
      onWheel={(event) => {
        event.preventDefault();
        setViewport(viewport?.zoomed(Math.exp(-event.deltaY * WHEEL_RATE), event.offsetX, event.offsetY));
      }}
      onDblClick={reset}
    >
      <canvas ref={below} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} />
      <canvas ref={above} width={Math.round(size.width * ratio)} height={Math.round(size.height * ratio)} />
    </div>
  );
}

/** The nearest point within reach; of equals the first. A pass over 100,000 takes a fraction of a millisecond. */
function rowNear(points: Float32Array, viewport: Viewport, x: number, y: number): number | undefined {
  const planeX = viewport.fromX(x);
  const planeY = viewport.fromY(y);
  let best: number | undefined;
  let least = (REACH / viewport.scale) ** 2;
  for (let i = 0; i < points.length; i += 2) {
    const distance = (points[i]! - planeX) ** 2 + (points[i + 1]! - planeY) ** 2;
    if (distance >= least) continue;
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
