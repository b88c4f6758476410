/**
 * Makes the documents' charts: SVG files from Vega-Lite specifications, readable in light and dark mode. The
 * file itself contains the colours of light mode, so every viewer shows them. Its style sheet replaces them
 * for readers in dark mode.
 */
import { parse, View } from "vega";
import { compile } from "vega-lite";

/** Light -> dark. */
const MODES = {
  ground: ["#ffffff", "#0d1117"],
  ink: ["#1f2328", "#e6edf3"],
  line: ["#d1d9e0", "#3d444d"],
  ours: ["#1b7f5c", "#2ea97c"],
  oursPlain: ["#3d9bd1", "#58b0e3"],
  other: ["#8c959f", "#7d8591"],
  third: ["#8a6fc9", "#a78bda"],
  yardstick: ["#c0392b", "#ff7b72"],
};

/** For use in specifications. */
export const COLOURS = Object.fromEntries(Object.entries(MODES).map(([name, [light]]) => [name, light]));

const CONFIG = {
  background: COLOURS.ground,
  font: "sans-serif",
  padding: 12,
  view: { stroke: null },
  title: {
    color: COLOURS.ink,
    subtitleColor: COLOURS.ink,
    anchor: "start",
    frame: "bounds",
    fontSize: 14,
    fontWeight: "normal",
    offset: 10,
  },
  axis: {
    labelColor: COLOURS.ink,
    titleColor: COLOURS.ink,
    gridColor: COLOURS.line,
    domainColor: COLOURS.line,
    tickColor: COLOURS.line,
    labelFontSize: 12,
    titleFontSize: 12,
    titleFontWeight: "normal",
    labelLimit: 0,
  },
  header: { labelColor: COLOURS.ink, titleColor: COLOURS.ink, labelFontSize: 12, labelLimit: 0 },
  legend: {
    labelColor: COLOURS.ink,
    titleColor: COLOURS.ink,
    labelFontSize: 12,
    labelLimit: 0,
    orient: "top",
    title: null,
    symbolStrokeWidth: 2,
  },
  text: { fontSize: 12, color: COLOURS.ink },
};

const DARK = Object.values(MODES)
  .map(([light, dark]) => `[fill="${light}"]{fill:${dark}}[stroke="${light}"]{stroke:${dark}}`)
  .join("");

/**
 * @param spec   Vega-Lite, with COLOURS; its own `config` adds to the common one.
 * @param title, description  for readers who cannot see the chart.
 * @returns {Promise<string>} the SVG file.
 */
export async function chart(spec, { title, description }) {
  const { spec: vegaSpec } = compile({ $schema: "https://vega.github.io/schema/vega-lite/v6.json", ...spec }, { config: CONFIG });
  const svg = await new View(parse(vegaSpec), { renderer: "none" }).toSVG();
  const begin = svg.indexOf(">") + 1;
  const head = svg.slice(0, begin - 1).replace(' class="marks"', "");
  return `${head} role="img" aria-labelledby="title description">
<title id="title">${escapeXml(title)}</title>
<desc id="description">${escapeXml(description)}</desc>
<style>@media (prefers-color-scheme: dark){${DARK}}</style>
${svg.slice(begin)}
`;
}

const escapeXml = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
