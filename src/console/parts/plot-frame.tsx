/** A plot drawn by uPlot on a canvas, in the page's colours, as wide as its place. What it shows must also stand beside it as text. */
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { currentTheme } from "../state/theme.ts";

/** What the page's styles say. */
export interface PlotLook {
  /** @param name  of a colour in base.css. */
  readonly color: (name: string) => string;
  /** What all axes have in common. */
  readonly axis: uPlot.Axis;
}

interface PlotFrameProps {
  data: uPlot.AlignedData;
  optionsOf: (look: PlotLook) => Partial<uPlot.Options> & Pick<uPlot.Options, "series">;
  /** The plot is made anew when this changes; else only its data are. */
  about: string;
  /** CSS pixels. */
  height: number;
}

export function PlotFrame({ data, optionsOf, about, height }: PlotFrameProps): JSX.Element {
  const frame = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  useEffect(() => {
    const element = frame.current as HTMLDivElement;
    const common = { width: element.clientWidth, height, legend: { show: false }, cursor: { show: false } };
    plot.current = new uPlot({ ...common, ...optionsOf(lookOf(element)) }, data, element);
    const observer = new ResizeObserver(() => plot.current?.setSize({ width: element.clientWidth, height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [about, height, currentTheme()]);

  useEffect(() => plot.current?.setData(data), [data]);

  return <div ref={frame} class="plot-frame" aria-hidden="true" />;
}

function lookOf(element: HTMLElement): PlotLook {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(name).trim();
  const font = `12px ${style.fontFamily}`;
  const grid = { stroke: color("--line"), width: 1 };
  return { color, axis: { stroke: color("--muted"), grid, ticks: { show: false }, font, labelFont: font, labelSize: 20 } };
}
