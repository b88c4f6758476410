/** An error or a notice, shown where it happened. */
import type { ComponentChildren, JSX } from "preact";

export function Fault({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <p class="notice bad" role="alert">
      {children}
    </p>
  );
}

export function Notice({ children }: { children: ComponentChildren }): JSX.Element {
  return <div class="notice">{children}</div>;
}

/** Grey lines in place of content that is loading. */
export function Waiting({ what }: { what: string }): JSX.Element {
  return (
    <p class="waiting" role="status">
      {what}
    </p>
  );
}
