/** Code to paste, in several languages, one shown at a time. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { CopyButton } from "./copy-button.tsx";

export interface Snippet {
  readonly name: string;
  readonly code: string;
}

export function Snippets({ label, snippets }: { label: string; snippets: readonly Snippet[] }): JSX.Element {
  const [shown, show] = useState(0);
  const code = snippets[shown]?.code ?? "";
  return (
    <section class="snippets" aria-label={label}>
      <div class="snippets-head">
        <div class="segmented" role="group" aria-label="Language">
          {snippets.map(({ name }, i) => (
            <button key={name} type="button" aria-pressed={i === shown} onClick={() => show(i)}>
              {name}
            </button>
          ))}
        </div>
        <CopyButton label="Copy" text={() => code} />
      </div>
      <pre role="region" tabIndex={0} aria-label={`${label}: ${snippets[shown]?.name ?? ""}`}>
        <code>{code}</code>
      </pre>
    </section>
  );
}
