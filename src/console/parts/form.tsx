/** The parts of forms: labelled fields, a form for a single action, and what the server answers or refuses. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import { connection } from "../state/page-session.ts";

interface FieldProps {
  label: string;
  /** Shown below it. */
  hint?: ComponentChildren;
  /** Why its value was refused. */
  fault?: string | undefined;
  /** The control, given the ids that connect it with its label and its messages. */
  children: (ids: { id: string; "aria-describedby": string | undefined; "aria-invalid": boolean }) => ComponentChildren;
}

/** A labelled control; if its value is wrong, the server's message is shown beside it. */
export function Field({ label, hint, fault, children }: FieldProps): JSX.Element {
  const id = useId();
  const isFaulty = fault !== undefined && fault !== "";
  const said = isFaulty || hint !== undefined;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": said ? `${id}-said` : undefined, "aria-invalid": isFaulty })}
      {said && (
        <p id={`${id}-said`} class={isFaulty ? "fault" : "hint"} role={isFaulty ? "alert" : undefined}>
          {isFaulty ? fault : hint}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps extends Pick<FieldProps, "label" | "hint" | "fault"> {
  value: string;
  onInput: (text: string) => void;
  /** The first control of a form that the user opened has the focus. */
  isFirst?: boolean;
  inputMode?: "numeric";
  type?: "password" | "search";
  class?: string;
  placeholder?: string;
  /** The id of a list to choose from. */
  list?: string;
  required?: boolean;
  spellcheck?: boolean;
}

/** A line of text: a name, a number or a value, which the browser neither corrects nor remembers. */
export function TextField({ label, hint, fault, onInput, isFirst = false, ...input }: TextFieldProps): JSX.Element {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(ids) => (
        <input
          {...ids}
          spellcheck={false}
          autocomplete="off"
          {...(input as JSX.IntrinsicElements["input"])}
          {...(isFirst ? { ref: focusOnMount } : {})}
          onInput={(event) => onInput(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

const focusOnMount = (element: HTMLElement | null): void => element?.focus();

interface SelectProps {
  label: string;
  value: string;
  options: readonly (readonly [value: string, text: string])[];
  onChoose: (value: string) => void;
}

export function Select({ label, value, options, onChoose }: SelectProps): JSX.Element {
  return (
    <Field label={label}>
      {(ids) => (
        <select {...ids} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
          {options.map(([option, text]) => (
            <option key={option} value={option} selected={option === value}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** What a form does instead of leaving the page. */
export const submitting =
  (work: () => void) =>
  (event: Event): void => {
    event.preventDefault();
    work();
  };

interface ActionFormProps {
  /** Its name for screen readers. */
  label: string;
  look: "schema-form" | "card insert-form";
  verb: string;
  onSubmit: () => void;
  /** undefined: it stays. */
  onCancel: (() => void) | undefined;
  children: ComponentChildren;
}

/** A form for a single action: a button that performs it, and one that closes the form. */
export function ActionForm({ label, look, verb, onSubmit, onCancel, children }: ActionFormProps): JSX.Element {
  return (
    <form class={look} aria-label={label} onSubmit={submitting(onSubmit)}>
      {children}
      <div class="actions">
        <button type="submit" class="primary">
          {verb}
        </button>
        {onCancel !== undefined && (
          <button type="button" onClick={onCancel}>
            Cancel
          </button>
        )}
      </div>
    </form>
  );
}

interface Attempt {
  /** Why the last attempt failed; "" if it did not. */
  readonly fault: string;
  readonly isBusy: boolean;
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
}

/** Work that the server may refuse: its words are shown until the next attempt. */
export function useAttempt(): Attempt {
  const [fault, setFault] = useState("");
  const [isBusy, setBusy] = useState(false);
  async function attempt(work: () => Promise<void>): Promise<void> {
    setFault("");
    setBusy(true);
    try {
      await work();
    } catch (error) {
      setFault(messageOf(error));
    }
    setBusy(false);
  }
  return { fault, isBusy, attempt };
}

interface Asked<T> {
  /** undefined until it has arrived, and if the server refuses. */
  readonly answer: T | undefined;
  readonly fault: string;
}

/** What the server answers; asked again when `about` changes, and when a server that was away is back. */
export function useAnswer<T>(ask: () => Promise<T>, about: readonly unknown[]): Asked<T> {
  const [asked, setAsked] = useState<Asked<T>>({ answer: undefined, fault: "" });
  const round = useRoundsOf(asked.fault !== "");
  useEffect(() => {
    let isOver = false;
    ask().then(
      (answer) => !isOver && setAsked({ answer, fault: "" }),
      (error: unknown) => !isOver && setAsked({ answer: undefined, fault: messageOf(error) }),
    );
    return () => {
      isOver = true;
    };
  }, [...about, round]);
  return asked;
}

/** @returns a number that grows when the server is back after it was away, if something has failed. */
export function useRoundsOf(hasFailed: boolean): number {
  const [round, setRound] = useState(0);
  const isUp = connection.value === "up";
  const wasUp = useRef(isUp);
  useEffect(() => {
    if (isUp && !wasUp.current && hasFailed) setRound(round + 1);
    wasUp.current = isUp;
  }, [isUp]);
  return round;
}
