/** Says what will be done, and does it when it is agreed to. Escape, or Cancel, does nothing. */

import type { JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import { Fault } from "./notice.tsx";

export interface Confirmation {
  readonly title: string;
  /** A sentence each. */
  readonly consequences: readonly string[];
  readonly isDestructive: boolean;
  /** What the button says. */
  readonly verb: string;
  /** @throws what the server says against it; it stays open and says so. */
  readonly run: () => Promise<void>;
}

export function ConfirmDialog({ confirmation, onClose }: { confirmation: Confirmation; onClose: () => void }): JSX.Element {
  const { title, consequences, isDestructive, verb, run } = confirmation;
  const dialog = useRef<HTMLDialogElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const titleId = useId();
  const [isBusy, setBusy] = useState(false);
  const [fault, setFault] = useState("");
  useEffect(() => {
    dialog.current?.showModal();
    // What changes nothing is nearest at hand.
    cancel.current?.focus();
  }, []);
  async function agree(): Promise<void> {
    setBusy(true);
    setFault("");
    try {
      await run();
      // Closed first, so that the focus goes back to where it was.
      dialog.current?.close();
    } catch (error) {
      setFault(messageOf(error));
      setBusy(false);
    }
  }
  return (
    <dialog ref={dialog} class="dialog" aria-labelledby={titleId} onClose={onClose}>
      <h2 id={titleId}>{title}</h2>
      <ul class="consequences" aria-label="What it will do">
        {consequences.map((sentence, i) => (
          <li key={i}>{sentence}</li>
        ))}
      </ul>
      {fault !== "" && <Fault>{fault}</Fault>}
      <div class="actions">
        <button type="button" class={isDestructive ? "danger" : "primary"} disabled={isBusy} onClick={() => void agree()}>
          {isBusy ? "Working …" : verb}
        </button>
        <button type="button" ref={cancel} onClick={() => dialog.current?.close()}>
          Cancel
        </button>
      </div>
    </dialog>
  );
}
