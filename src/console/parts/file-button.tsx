/** Chooses a file, for those who do not drop one. */
import type { JSX } from "preact";
import { useRef } from "preact/hooks";

interface FileButtonProps {
  label: string;
  isPrimary?: boolean;
  onFile: (file: File) => void;
}

export function FileButton({ label, isPrimary = false, onFile }: FileButtonProps): JSX.Element {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class={isPrimary ? "primary" : ""} onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept=".csv,.tsv,.txt,.jsonl,.ndjson,.json,.npy,.parquet"
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file !== undefined) onFile(file);
          // Lets the same file be chosen again.
          event.currentTarget.value = "";
        }}
      />
    </>
  );
}
