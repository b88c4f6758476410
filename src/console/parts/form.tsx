/** The parts of forms: labelled fields, a form for a single action, and work that the server may refuse. */
import type { ComponentChildren, JSX } from "preact";
import { useId, useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";

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
}

/** A line of text: a name, a number or a value, which the browser neither corrects nor remembers. */
export function TextField({ label, hint, fault, value, onInput, isFirst = false, inputMode }: TextFieldProps): JSX.Element {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(ids) => (
        <input
          {...ids}
          value={value}
          {...(inputMode === undefined ? {} : { inputMode })}
          spellcheck={false}
          autocomplete="off"
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
    <form
      class={look}
      aria-label={label}
      onSubmit={(event) => {
        event.preventDefault();
        onSubmit();
      }}
    >
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
  readonly attempt: (work: () => Promise<void>) => Promise<void>;
}

/** Work that the server may refuse: its words are shown until the next attempt. */
export function useAttempt(): Attempt {
  const [fault, setFault] = useState("");
  async function attempt(work: () => Promise<void>): Promise<void> {
    setFault("");
    try {
      await work();
    } catch (error) {
      setFault(messageOf(error));
    }
  }
  return { fault, attempt };
}
