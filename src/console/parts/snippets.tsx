/** Code to paste, in several languages, one shown at a time. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon } from "./icons.tsx";

export interface Snippet {
  readonly name: string;
  readonly code: string;
}

const COPIED_MS = 1_500;

export function Snippets({ label, snippets }: { label: string; snippets: readonly Snippet[] }): JSX.Element {
  const [shown, show] = useState(0);
  const [isCopied, setCopied] = useState(false);
  const code = snippets[shown]?.code ?? "";
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(code);
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  }
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
        <button type="button" class="quiet" onClick={() => void copy().catch(() => undefined)}>
          <Icon name={isCopied ? "check" : "copy"} />
          {isCopied ? "Copied" : "Copy"}
        </button>
      </div>
      <pre role="region" tabIndex={0} aria-label={`${label}: ${snippets[shown]?.name ?? ""}`}>
        <code>{code}</code>
      </pre>
    </section>
  );
}
