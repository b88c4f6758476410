/** A form for a single action: a button that performs it, and one that closes the form. */
import type { ComponentChildren, JSX } from "preact";

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
