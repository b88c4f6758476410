/**
 * A form for one name, shown where it will be used. If the server refuses the name, its message is shown
 * beside it.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { messageOf } from "../api/client.ts";
import { Field, focusOnMount } from "../parts/field.tsx";

interface NameFormProps {
  title: string;
  label: string;
  start: string;
  verb: string;
  /** @throws what is wrong with the name. */
  onSubmit: (name: string) => Promise<void>;
  onCancel: () => void;
}

export function NameForm({ title, label, start, verb, onSubmit, onCancel }: NameFormProps): JSX.Element {
  const [name, setName] = useState(start);
  const [fault, setFault] = useState("");
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setFault("");
    try {
      await onSubmit(name);
    } catch (error) {
      setFault(messageOf(error));
    }
  }
  return (
    <form class="schema-form" aria-label={title} onSubmit={(event) => void submit(event)}>
      <Field label={label} fault={fault}>
        {(ids) => (
          <input
            {...ids}
            value={name}
            spellcheck={false}
            autocomplete="off"
            ref={focusOnMount}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <div class="actions">
        <button type="submit" class="primary">
          {verb}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}
