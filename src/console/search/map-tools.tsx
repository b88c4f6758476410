/** What stands around the map: the meaning of its colours, which hides and shows them, and the picture to keep. */
import type { JSX } from "preact";
import { MOST_SHAPES, pngOf, type ShownMap, svgOf } from "../map/picture.ts";
import { type LegendEntry, numberOf } from "../map/point-colors.ts";
import { Swatch } from "../parts/icons.tsx";
import { Menu } from "../parts/menu.tsx";
import { saveFile } from "../parts/save-file.ts";

interface LegendLineProps {
  entries: readonly LegendEntry[];
  /** Colours. */
  hidden: ReadonlySet<number>;
  onHide: (hidden: ReadonlySet<number>) => void;
  /** Whether the map has the values written on it. */
  hasCaptions: boolean;
  onCaptions: (isWanted: boolean) => void;
}

export function LegendLine({ entries, hidden, onHide, hasCaptions, onCaptions }: LegendLineProps): JSX.Element | null {
  if (entries.length === 0) return null;
  function toggle(color: number): void {
    const next = new Set(hidden);
    if (!next.delete(color)) next.add(color);
    onHide(next);
  }
  return (
    <ul class="legend" aria-label="Colours">
      {entries.map(({ value, color, count }) => {
        const number = numberOf(color);
        return (
          <li key={value}>
            <button type="button" class="quiet" aria-pressed={!hidden.has(number)} title="Show or hide them" onClick={() => toggle(number)}>
              <Swatch color={color} />
              <bdi>{value}</bdi> <span class="muted">{count.toLocaleString("en")}</span>
            </button>
          </li>
        );
      })}
      <li>
        <button type="button" class="quiet" aria-pressed={hasCaptions} onClick={() => onCaptions(!hasCaptions)}>
          Captions
        </button>
      </li>
      {hidden.size > 0 && (
        <li>
          <button type="button" class="quiet" onClick={() => onHide(new Set())}>
            Show all
          </button>
        </li>
      )}
    </ul>
  );
}

interface PictureMenuProps {
  /** Of the file. */
  name: string;
  /** Of points. */
  count: number;
  shown: () => ShownMap | undefined;
}

export function PictureMenu({ name, count, shown }: PictureMenuProps): JSX.Element {
  async function save(make: (map: ShownMap) => Promise<Blob> | Blob, ending: string): Promise<void> {
    const map = shown();
    if (map !== undefined) saveFile(await make(map), `${name}.${ending}`);
  }
  return (
    <Menu label="Picture">
      <button type="button" onClick={() => void save(pngOf, "png")}>
        PNG, as it is seen
      </button>
      <button type="button" disabled={count > MOST_SHAPES} onClick={() => void save(svgOf, "svg")}>
        SVG, the points
      </button>
      {count > MOST_SHAPES && <p class="hint">An SVG holds {MOST_SHAPES.toLocaleString("en")} points at most.</p>}
    </Menu>
  );
}
