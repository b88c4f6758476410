/** Describes what will be done, and does it once confirmed. Escape and Cancel do nothing. */

import type { JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useAttempt } from "./form.tsx";
import { Fault } from "./notice.tsx";

export interface Confirmation {
  readonly title: string;
  /** A sentence each. */
  readonly consequences: readonly string[];
  readonly isDestructive: boolean;
  /** The label of the button. */
  readonly verb: string;
  /** @throws the server's objection; the dialog stays open and shows it. */
  readonly run: () => Promise<void>;
}

export function ConfirmDialog({ confirmation, onClose }: { confirmation: Confirmation; onClose: () => void }): JSX.Element {
  const { title, consequences, isDestructive, verb, run } = confirmation;
  const dialog = useRef<HTMLDialogElement>(null);
  const cancel = useRef<HTMLButtonElement>(null);
  const titleId = useId();
  const { fault, isBusy, attempt } = useAttempt();
  useEffect(() => {
    dialog.current?.showModal();
    // The harmless choice has the focus.
    cancel.current?.focus();
  }, []);
  const agree = (): Promise<void> =>
    attempt(async () => {
      await run();
      // Closed first, so that the focus returns to where it was.
      dialog.current?.close();
    });
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
