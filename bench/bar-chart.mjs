/** A horizontal bar chart as SVG, which brings its own background and is readable in light and in dark mode. */

const ROW_HEIGHT = 22;
const PLOT_WIDTH = 420;
const TOP = 40;
const STYLE = `
  .background { fill: #ffffff } text { fill: #1f2328; stroke: #ffffff; stroke-width: 3px; paint-order: stroke } .tick { stroke: #d1d9e0 } .yardstick { stroke: #c0392b } .yardstick-label { fill: #c0392b }
  .ours { fill: #1b7f5c } .ours-plain { fill: #3d9bd1 } .other { fill: #8c959f } .shard { fill: #8a6fc9 } .shards { fill: #5b3fa8 }
  @media (prefers-color-scheme: dark) {
    .background { fill: #0d1117 } text { fill: #e6edf3; stroke: #0d1117 } .tick { stroke: #3d444d } .yardstick { stroke: #ff7b72 } .yardstick-label { fill: #ff7b72 }
    .ours { fill: #2ea97c } .ours-plain { fill: #58b0e3 } .other { fill: #7d8590 } .shard { fill: #a78bda } .shards { fill: #8264d6 }
  }`;

const escapeXml = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);

/**
 * @param bars       {label, value, text, style}[]; style is a class of STYLE.
 * @param from, to   the ends of the axis; a longer bar is cut off at `to`.
 * @param ticks      values on the axis.
 * @param yardstick  {value, label} | undefined: a dashed line.
 * @param logarithmic  `from` must be above 0.
 */
export function barChart({ title, description, labelWidth, bars, from, to, ticks, yardstick, logarithmic }) {
  const position = logarithmic ? Math.log : (value) => value;
  const x = (value) => labelWidth + (PLOT_WIDTH * (position(Math.min(to, value)) - position(from))) / (position(to) - position(from));
  const bottom = TOP + bars.length * ROW_HEIGHT;
  const width = labelWidth + PLOT_WIDTH + 110;
  const height = bottom + 40;
  const number = (value) => value.toFixed(1);
  const drawn = bars.map(({ label, value, text, style }, i) => {
    const y = TOP + i * ROW_HEIGHT;
    const end = Math.max(labelWidth + 1, x(value));
    return [
      `<text x="${labelWidth - 8}" y="${y + 14}" text-anchor="end">${escapeXml(label)}</text>`,
      `<rect class="${style}" x="${labelWidth}" y="${y + 2}" width="${number(end - labelWidth)}" height="${ROW_HEIGHT - 5}"/>`,
      `<text x="${number(end + 6)}" y="${y + 14}">${escapeXml(text)}</text>`,
    ].join("\n");
  });
  const axis = ticks.map((tick) =>
    [
      `<line class="tick" x1="${number(x(tick))}" x2="${number(x(tick))}" y1="${TOP}" y2="${bottom}"/>`,
      `<text x="${number(x(tick))}" y="${bottom + 15}" text-anchor="middle">${tick}</text>`,
    ].join("\n"),
  );
  const mark = yardstick && [
    `<line class="yardstick" x1="${number(x(yardstick.value))}" x2="${number(x(yardstick.value))}" y1="${TOP - 6}" y2="${bottom}" stroke-dasharray="4 3"/>`,
    `<text class="yardstick-label" x="${number(x(yardstick.value))}" y="${bottom + 32}" text-anchor="middle">${escapeXml(yardstick.label)}</text>`,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="title description" font-family="sans-serif" font-size="12">
<title id="title">${escapeXml(title)}</title>
<desc id="description">${escapeXml(description)}</desc>
<style>${STYLE}
</style>
<rect class="background" width="100%" height="100%"/>
<text x="10" y="22" font-size="14">${escapeXml(title)}</text>
${[...axis, ...(mark ?? []), ...drawn].join("\n")}
</svg>
`;
}
