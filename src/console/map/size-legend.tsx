/** What the sizes of points mean, in a corner of the map; and the same on a picture of it. */
import type { JSX } from "preact";
import { type Ink, writeText } from "./labels.ts";
import type { SizeLegend } from "./point-sizes.ts";

const FONT = "12px system-ui, sans-serif";
/** CSS pixels between it and the edges. */
const EDGE = 10;

export function SizeLegendBox({ legend: { title, width, height, marks, textX } }: { legend: SizeLegend }): JSX.Element {
  return (
    <svg
      class="map-sizes"
      role="img"
      aria-label={`Sizes: ${title}, ${marks.map(({ text }) => text).join(", ")}`}
      viewBox={`0 0 ${width} ${height}`}
      width={width}
      height={height}
    >
      <text x="4" y="15">
        {title}
      </text>
      {marks.map(({ text, x, y, radius }) => (
        <g key={y}>
          <circle cx={x} cy={y} r={radius} />
          <text x={textX} y={y + 4}>
            {text}
          </text>
        </g>
      ))}
    </svg>
  );
}

/** @param height  of the map, in CSS pixels. */
export function drawSizeLegend(
  context: OffscreenCanvasRenderingContext2D,
  legend: SizeLegend,
  height: number,
  ratio: number,
  ink: Ink,
): void {
  const top = height - EDGE - legend.height;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.font = FONT;
  writeText(context, legend.title, { left: EDGE + 4, top, right: 0, bottom: top + 22 }, ink);
  for (const { text, x, y, radius } of legend.marks) {
    context.beginPath();
    context.arc(EDGE + x, top + y, radius, 0, 2 * Math.PI);
    context.strokeStyle = ink.text;
    context.lineWidth = 1;
    context.stroke();
    writeText(context, text, { left: EDGE + legend.textX, top: top + y - 10, right: 0, bottom: top + y + 10 }, ink);
  }
}

/** A group of an SVG. The texts are numbers and the name of a column, which have nothing to escape. */
export function sizeLegendShapes({ title, height: own, marks, textX }: SizeLegend, height: number, ink: Ink): string {
  const text = (x: number, y: number, said: string): string =>
    `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" fill="${ink.text}">${said}</text>`;
  const parts = marks.map(
    ({ text: said, x, y, radius }) =>
      `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="${radius.toFixed(2)}" fill="none" stroke="${ink.text}"/>${text(textX, y + 4, said)}`,
  );
  return `<g transform="translate(${EDGE} ${(height - EDGE - own).toFixed(1)})" font-family="system-ui, sans-serif" font-size="12">${text(4, 15, title)}${parts.join("")}</g>`;
}
