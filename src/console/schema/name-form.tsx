/**
 * A form for one name, shown where it will be used. If the server refuses the name, its message is shown
 * beside it.
 */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ActionForm } from "../parts/action-form.tsx";
import { TextField } from "../parts/field.tsx";
import { useAttempt } from "../parts/use-attempt.ts";

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
  const { fault, attempt } = useAttempt();
  return (
    <ActionForm label={title} look="schema-form" verb={verb} onSubmit={() => void attempt(() => onSubmit(name))} onCancel={onCancel}>
      <TextField label={label} fault={fault} value={name} onInput={setName} isFirst />
    </ActionForm>
  );
}
