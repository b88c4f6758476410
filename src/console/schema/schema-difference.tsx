/** The operations that turn one branch's schema into another's, and a way to apply them. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { branchPath, type Place } from "../api/paths.ts";
import { Select } from "../parts/field.tsx";
import { Fault } from "../parts/notice.tsx";
import { useAttempt } from "../parts/use-attempt.ts";
import { mayAdminister } from "../state/page-session.ts";
import { inWords, type SchemaOperation } from "./schema-operation.ts";

interface SchemaDifferenceProps {
  place: Place;
  others: readonly string[];
  propose: (title: string, verb: string, operations: readonly SchemaOperation[]) => Promise<void>;
}

interface Difference {
  readonly other: string;
  readonly operations: readonly SchemaOperation[];
}

export function SchemaDifference({ place, others, propose }: SchemaDifferenceProps): JSX.Element | null {
  const [chosen, setChosen] = useState("");
  const [difference, setDifference] = useState<Difference | undefined>(undefined);
  const { fault, attempt } = useAttempt();
  if (others.length === 0) return null;
  const other = others.includes(chosen) ? chosen : (others[0] as string);

  const compare = (): Promise<void> =>
    attempt(async () => {
      const path = `${branchPath(place)}/schema/compare/${encodeURIComponent(other)}`;
      const { edits } = await call<{ edits: { operations: SchemaOperation[] } }>("POST", path, {});
      setDifference({ other, operations: edits.operations });
    });
  const takeOver = ({ other: from, operations }: Difference): Promise<void> =>
    attempt(async () => {
      await propose(`Give ${place.branch} the schema of ${from}`, "Change the schema", operations);
      setDifference(undefined);
    });

  return (
    <section class="stack" aria-label="Difference">
      <form
        class="compare-form"
        onSubmit={(event) => {
          event.preventDefault();
          void compare();
        }}
      >
        <Select
          label={`Compare ${place.branch} with`}
          value={other}
          options={others.map((name) => [name, name] as const)}
          onChoose={setChosen}
        />
        <button type="submit">Compare</button>
      </form>
      {fault !== "" && <Fault>{fault}</Fault>}
      {difference !== undefined && (
        <div class="stack" role="status">
          <p class="small">
            {difference.operations.length === 0
              ? `${difference.other} has the same schema.`
              : `What turns the schema of ${place.branch} into that of ${difference.other}:`}
          </p>
          {difference.operations.length > 0 && (
            <ul class="difference">
              {difference.operations.map((operation, i) => {
                const { sign, text } = inWords(operation);
                return (
                  <li key={i} class={sign === "+" ? "added" : sign === "−" ? "removed" : ""}>
                    <span aria-hidden="true">{sign}</span>
                    <span class="hidden">{sign === "+" ? "add " : sign === "−" ? "remove " : "rename "}</span>
                    <bdi>{text}</bdi>
                  </li>
                );
              })}
            </ul>
          )}
          {difference.operations.length > 0 && mayAdminister.value && (
            <div class="actions">
              <button type="button" onClick={() => void takeOver(difference)}>
                Do this to {place.branch} …
              </button>
            </div>
          )}
        </div>
      )}
    </section>
  );
}
