/** Opens the finder, also by Ctrl or ⌘ with K. Its code is fetched when it is first opened. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { lazyView } from "../lazy-view.tsx";
import { Icon } from "../parts/icons.tsx";
import { access } from "../state/page-session.ts";

const Finder = lazyView(() => import("./finder.tsx"), "Finder");

export function FindButton(): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key !== "k" || !(event.ctrlKey || event.metaKey) || access.peek() === undefined) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener("keydown", press);
    return () => removeEventListener("keydown", press);
  }, []);
  if (access.value === undefined) return null;
  return (
    <>
      <button type="button" class="quiet" aria-keyshortcuts="Control+K Meta+K" title="Ctrl or ⌘ with K" onClick={() => setOpen(true)}>
        <Icon name="search" /> Go to
      </button>
      {isOpen && <Finder onClose={() => setOpen(false)} />}
    </>
  );
}
