/** Finds the named colours that look most like the picked one. In CIE L*a*b* the distance of two colours is close to the difference that the eye sees. */
import { VectorIndex } from "lodestone";

const NAMES = [
  "black",
  "white",
  "red",
  "lime",
  "blue",
  "yellow",
  "cyan",
  "magenta",
  "gray",
  "orange",
  "pink",
  "brown",
  "purple",
  "indigo",
  "rebeccapurple",
  "darkslateblue",
  "slateblue",
  "teal",
  "navy",
  "olive",
  "maroon",
  "gold",
  "coral",
  "salmon",
  "khaki",
  "plum",
  "orchid",
  "crimson",
  "tomato",
  "turquoise",
];

/** From sRGB by D65 white. */
function toLab([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((x) => (x / 255 > 0.04045 ? ((x / 255 + 0.055) / 1.055) ** 2.4 : x / 255 / 12.92));
  const [x, y, z] = [
    (0.4124564 * r + 0.3575761 * g + 0.1804375 * b) / 0.95047,
    0.2126729 * r + 0.7151522 * g + 0.072175 * b,
    (0.0193339 * r + 0.119192 * g + 0.9503041 * b) / 1.08883,
  ].map((t) => (t > 216 / 24389 ? Math.cbrt(t) : (24389 / 27 / 116) * t + 16 / 116));
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

/** The browser knows its names. */
function channelsOf(colour) {
  const context = new OffscreenCanvas(1, 1).getContext("2d");
  context.fillStyle = colour;
  context.fillRect(0, 0, 1, 1);
  return context.getImageData(0, 0, 1, 1).data.slice(0, 3);
}

const index = await VectorIndex.create({ dimension: 3 });
for (const name of NAMES) index.upsert(name, toLab(channelsOf(name)));

function show() {
  const { results } = index.search(toLab(channelsOf(document.querySelector("#colour").value)), { k: 5, similarity: "l2" });
  document.querySelector("#nearest").replaceChildren(
    ...results.map(({ id }) => {
      const item = document.createElement("li");
      item.textContent = id;
      item.style.borderLeft = `3rem solid ${id}`;
      return item;
    }),
  );
}

document.querySelector("#colour").addEventListener("input", show);
show();
