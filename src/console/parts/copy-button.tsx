/** Copies a text, and says so until the user does something else. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import { Icon, type IconName } from "./icons.tsx";

interface CopyButtonProps {
  label: string;
  icon?: IconName;
  text: () => string;
}

interface Outcome {
  readonly isCopied: boolean;
  /** Why not. */
  readonly fault?: string;
}

export function CopyButton({ label, icon = "copy", text }: CopyButtonProps): JSX.Element {
  const [outcome, setOutcome] = useState<Outcome | undefined>(undefined);
  useEffect(() => {
    if (outcome === undefined) return;
    const controller = new AbortController();
    const forget = (): void => setOutcome(undefined);
    for (const event of ["pointerdown", "keydown"]) addEventListener(event, forget, { capture: true, signal: controller.signal });
    return () => controller.abort();
  }, [outcome]);
  async function copy(): Promise<void> {
    try {
      // Browsers have no clipboard for pages that come by plain http from another computer.
      if (navigator.clipboard === undefined) throw new Error("The browser lets only pages by https or from localhost copy.");
      await navigator.clipboard.writeText(text());
      setOutcome({ isCopied: true });
    } catch (error) {
      setOutcome({ isCopied: false, fault: messageOf(error) });
    }
  }
  return (
    <button type="button" class="quiet" title={outcome?.fault} onClick={() => void copy()}>
      <Icon name={outcome?.isCopied === true ? "check" : icon} />
      <span aria-live="polite">{outcome === undefined ? label : outcome.isCopied ? "Copied" : "Not copied"}</span>
    </button>
  );
}
