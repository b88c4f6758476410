/** A form with one thing to do, where it is needed: a button that does it, and one that closes the form. */
import type { ComponentChildren, JSX } from "preact";

interface ActionFormProps {
  /** For those who do not see it. */
  label: string;
  look: "schema-form" | "card insert-form";
  verb: string;
  onSubmit: () => void;
  /** undefined: it stays. */
  onCancel: (() => void) | undefined;
  children: ComponentChildren;
}

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
