/** The branches of the database: create, copy, compare and delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { branchPath, call, type Place } from "../api/client.ts";
import type { Confirmation } from "../parts/confirm-dialog.tsx";
import { ActionForm, Select, submitting, TextField, useAttempt } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault } from "../parts/notice.tsx";
import { useKept } from "../state/kept.ts";
import { mayAdminister } from "../state/page-session.ts";
import { go, hrefOf } from "../state/route.ts";
import { databases, firstPlace, loadDatabases } from "../state/server-content.ts";
import { contentOf, inWords, type SchemaOperation } from "./schema-operation.ts";

interface BranchPanelProps {
  place: Place;
  ask: (confirmation: Confirmation) => void;
  propose: (title: string, verb: string, operations: readonly SchemaOperation[]) => Promise<void>;
}

export function BranchPanel({ place, ask, propose }: BranchPanelProps): JSX.Element {
  const branches = databases.value?.find(({ name }) => name === place.database)?.branches ?? [];
  const [isMaking, setMaking] = useKept(`making a branch ${place.database}`, () => false);
  const { fault, attempt } = useAttempt();

  const remove = (branch: string): Promise<void> =>
    attempt(async () => {
      const content = await contentOf({ ...place, branch });
      const last = branches.length === 1 ? ` The database ${place.database} will be deleted too, because it has no other branch.` : "";
      ask({
        title: `Delete the branch ${branch}`,
        consequences: [`The branch ${branch} of ${place.database} will be deleted. It has ${content}. This cannot be undone.${last}`],
        isDestructive: true,
        verb: "Delete branch",
        async run() {
          await call("DELETE", branchPath({ ...place, branch }));
          await loadDatabases();
          if (branch !== place.branch) return;
          const left = branches.find((name) => name !== branch);
          go("schema", left === undefined ? firstPlace() : { ...place, branch: left });
        },
      });
    });

  return (
    <section class="card schema-panel" aria-label="Branches">
      <div class="heading">
        <h2>
          Branches of <bdi>{place.database}</bdi>
        </h2>
        {mayAdminister.value && !isMaking && (
          <button type="button" onClick={() => setMaking(true)}>
            <Icon name="plus" /> Branch
          </button>
        )}
      </div>
      {isMaking && <BranchForm place={place} branches={branches} ask={ask} onClose={() => setMaking(false)} />}
      {fault !== "" && <Fault>{fault}</Fault>}
      <ul class="column-list" aria-label="Branches">
        {branches.map((branch) => (
          <li key={branch} class="column-line">
            <a
              class="column-name"
              href={hrefOf("schema", { ...place, branch })}
              aria-current={branch === place.branch ? "true" : undefined}
            >
              <bdi>{branch}</bdi>
            </a>
            {mayAdminister.value && (
              <button type="button" class="quiet" aria-label={`Delete the branch ${branch}`} onClick={() => void remove(branch)}>
                <Icon name="trash" />
              </button>
            )}
          </li>
        ))}
      </ul>
      <SchemaDifference place={place} others={branches.filter((branch) => branch !== place.branch)} propose={propose} />
    </section>
  );
}

interface BranchFormProps {
  /** undefined: there is no database yet. */
  place: Place | undefined;
  branches: readonly string[];
  ask: (confirmation: Confirmation) => void;
  onClose?: () => void;
}

/** Creates a branch, possibly of a new database. */
export function BranchForm({ place, branches, ask, onClose }: BranchFormProps): JSX.Element {
  // The next new branch is another one.
  const [draft, setDraft] = useKept(`new branch ${place?.database ?? ""} ${branches.length}`, () => ({
    database: place?.database ?? "",
    branch: place === undefined ? "main" : "",
    from: "",
  }));
  const { database, branch, from } = draft;
  const { fault, attempt } = useAttempt();
  const copied = database === place?.database ? from : "";

  const create = (): Promise<void> =>
    attempt(async () => {
      if (database === "" || branch === "") throw new Error("Name the database and the branch.");
      const isNew = databases.value?.some(({ name }) => name === database) !== true;
      const content =
        copied === "" ? "It will have no tables." : `It will have a copy of ${await contentOf({ database, branch: copied })}.`;
      ask({
        title: `Create ${database}:${branch}`,
        consequences: [`The branch ${branch} of ${isNew ? "the new database " : ""}${database} will be created. ${content}`],
        isDestructive: false,
        verb: "Create branch",
        async run() {
          const made = { database, branch };
          await call("PUT", branchPath(made), copied === "" ? {} : { from: copied });
          await loadDatabases();
          onClose?.();
          go("schema", made);
        },
      });
    });

  return (
    <ActionForm label="New branch" look="schema-form" verb="Create" onSubmit={() => void create()} onCancel={onClose}>
      <div class="schema-fields">
        <TextField label="Database" value={database} onInput={(text) => setDraft({ ...draft, database: text })} />
        <TextField
          label="Name of the branch"
          fault={fault}
          value={branch}
          onInput={(text) => setDraft({ ...draft, branch: text })}
          isFirst
        />
        {database === place?.database && (
          <Select
            label="Copy of"
            value={copied}
            options={[["", "nothing (empty)"], ...branches.map((name) => [name, name] as const)]}
            onChoose={(name) => setDraft({ ...draft, from: name })}
          />
        )}
      </div>
    </ActionForm>
  );
}

interface SchemaDifferenceProps {
  place: Place;
  others: readonly string[];
  propose: (title: string, verb: string, operations: readonly SchemaOperation[]) => Promise<void>;
}

interface Difference {
  readonly other: string;
  readonly operations: readonly SchemaOperation[];
}

/** The operations that turn one branch's schema into another's, and a way to apply them. */
function SchemaDifference({ place, others, propose }: SchemaDifferenceProps): JSX.Element | null {
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
      <form class="compare-form" onSubmit={submitting(() => void compare())}>
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
              : `To give ${place.branch} the schema of ${difference.other}:`}
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
                Apply to {place.branch} …
              </button>
            </div>
          )}
        </div>
      )}
    </section>
  );
}
