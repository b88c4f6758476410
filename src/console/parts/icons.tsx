/**
 * Line icons, 24 × 24, in the colour of the text. They are decoration: the text beside them says what they
 * mean.
 */
import type { JSX } from "preact";

const PATHS = {
  home: "M4 11 12 4l8 7v8a1 1 0 0 1-1 1h-4v-6H9v6H5a1 1 0 0 1-1-1z",
  search: "M10.5 17a6.5 6.5 0 1 0 0-13 6.5 6.5 0 0 0 0 13zm4.7-1.8L20 20",
  table: "M4 5h16v14H4zM4 10h16M4 14.5h16M10 5v14",
  sql: "m5 8 4 4-4 4m7 1h7",
  schema: "M4 4h7v5H4zm9 11h7v5h-7zM7.500 9v8.500H13",
  server: "M4 5h16v5H4zm0 9h16v5H4zM7.500 7.500h.01M7.500 16.500h.01",
  reference: "M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zm0 13a3 3 0 0 1 3-3h11",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zm0-13v2m0 14v2m9-9h-2M5 12H3m15.400-6.400L17 7M7 17l-1.400 1.400m12.800 0L17 17M7 7 5.600 5.600",
  moon: "M20 14.500A8 8 0 0 1 9.500 4 8 8 0 1 0 20 14.500z",
  copy: "M9 9h10v11H9zM5 15V4h10",
  check: "m5 12.500 4.500 4.500L19 7.500",
  close: "m6 6 12 12M18 6 6 18",
  card: "M4 5h16v14H4zm4 5h8m-8 4h5",
  plus: "M12 5v14M5 12h14",
  trash: "M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13",
  undo: "M8 5 4 9l4 4M4 9h10a5.500 5.500 0 0 1 0 11h-3",
  play: "M7 5v14l11-7z",
  link: "M10 14a4 4 0 0 0 6 .5l3-3a4 4 0 0 0-5.700-5.700L12 7m2 3a4 4 0 0 0-6-.5l-3 3a4 4 0 0 0 5.700 5.700L12 17",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The mark: a needle. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path class="north" d="M12 1 17 12H7z" />
      <path class="south" d="M12 23 7 12h10z" />
    </svg>
  );
}

/** An SVG, because its fill is an attribute: the page's policy allows that, but no inline style. */
export function Swatch({ color }: { color: string }): JSX.Element {
  return (
    <svg class="swatch" viewBox="0 0 12 12" aria-hidden="true">
      <circle cx="6" cy="6" r="5.500" fill={color} />
    </svg>
  );
}
