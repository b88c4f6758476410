/** A button that opens a panel below it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";

interface MenuProps {
  label: string;
  children: ComponentChildren;
}

/** It closes on Escape, and when one clicks or goes elsewhere. */
export function Menu({ label, children }: MenuProps): JSX.Element {
  const menu = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    const leave = ({ target }: Event): void => {
      const element = menu.current;
      if (element !== null && !element.contains(target as Node)) element.open = false;
    };
    addEventListener("pointerdown", leave);
    addEventListener("focusin", leave);
    return () => {
      removeEventListener("pointerdown", leave);
      removeEventListener("focusin", leave);
    };
  }, []);
  function pressKey({ key }: KeyboardEvent): void {
    const element = menu.current;
    if (key !== "Escape" || element === null || !element.open) return;
    element.open = false;
    element.querySelector("summary")?.focus();
  }
  return (
    <details ref={menu} class="builder" onKeyDown={pressKey}>
      <summary>{label}</summary>
      <div class="builder-fields">{children}</div>
    </details>
  );
}
