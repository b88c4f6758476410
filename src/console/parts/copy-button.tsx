/** Copies a text, and says so for a moment. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Icon, type IconName } from "./icons.tsx";

interface CopyButtonProps {
  label: string;
  icon?: IconName;
  text: () => string;
}

const COPIED_MS = 1_500;

export function CopyButton({ label, icon = "copy", text }: CopyButtonProps): JSX.Element {
  const [isCopied, setCopied] = useState(false);
  async function copy(): Promise<void> {
    await navigator.clipboard.writeText(text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  }
  return (
    <button type="button" class="quiet" onClick={() => void copy().catch(() => undefined)}>
      <Icon name={isCopied ? "check" : icon} />
      <span aria-live="polite">{isCopied ? "Copied" : label}</span>
    </button>
  );
}
