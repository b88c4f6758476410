/** API keys: creates them, shows a new one once, and revokes them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Scope } from "../../key-scopes.ts";
import { call } from "../api/client.ts";
import { type Confirmation, ConfirmDialog } from "../parts/confirm-dialog.tsx";
import { Select, submitting, TextField, useAttempt } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Fault, Notice } from "../parts/notice.tsx";
import { dayInWords } from "../parts/numbers.ts";
import { useKept } from "../state/kept.ts";
import { access } from "../state/page-session.ts";
import { databases } from "../state/server-content.ts";

interface KeyEntry {
  readonly name: string;
  readonly scope: Scope;
  readonly databases: readonly string[] | null;
  readonly createdAt: string | null;
}

interface KeyList {
  readonly keys: readonly KeyEntry[];
  readonly hasFile: boolean;
}

export function KeyPanel(): JSX.Element {
  const [list, setList] = useState<KeyList | undefined>(undefined);
  const { fault, attempt } = useAttempt();
  const [confirmation, ask] = useState<Confirmation | undefined>(undefined);
  const asksForKeys = access.value?.keyName !== null;

  const read = (): Promise<void> => attempt(async () => setList(await call<KeyList>("GET", "/keys")));
  useEffect(() => {
    if (asksForKeys) void read();
  }, [asksForKeys]);

  function revoke(name: string): void {
    ask({
      title: `Revoke the key ${name}`,
      consequences: [`Requests with the key ${name} will be refused. A revoked key cannot be restored; you can create a new one.`],
      isDestructive: true,
      verb: "Revoke",
      async run() {
        await call("DELETE", `/keys/${encodeURIComponent(name)}`);
        await read();
      },
    });
  }

  return (
    <section class="card schema-panel" aria-label="Keys">
      <h2>Keys</h2>
      {!asksForKeys && (
        <p class="muted">
          This server needs no keys, because it listens on this machine only. Create one with <code>lodestone keys create</code>, and start
          the server with <code>--key-file</code>.
        </p>
      )}
      {fault !== "" && <Fault>{fault}</Fault>}
      {list !== undefined && (
        <ul class="column-list" aria-label="Keys">
          {list.keys.map(({ name, scope, databases: limitedTo, createdAt }) => (
            <li key={name} class="column-line">
              <bdi class="column-name">{name}</bdi>
              <span class="type">
                {scope} · {limitedTo === null ? "all databases" : limitedTo.join(", ")} ·{" "}
                {createdAt === null ? "given on the command line" : dayInWords(createdAt)}
                {name === access.value?.keyName ? " · yours" : ""}
              </span>
              {createdAt !== null && name !== access.value?.keyName && (
                <button type="button" class="quiet" aria-label={`Revoke ${name}`} onClick={() => revoke(name)}>
                  <Icon name="trash" />
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      {list?.hasFile === true && <KeyForm onMade={read} />}
      {list?.hasFile === false && (
        <p class="muted small">
          These were given on the command line. With <code>--key-file</code>, keys can be created and revoked here.
        </p>
      )}
      {confirmation !== undefined && <ConfirmDialog confirmation={confirmation} onClose={() => ask(undefined)} />}
    </section>
  );
}

function KeyForm({ onMade }: { onMade: () => Promise<void> }): JSX.Element {
  const [draft, setDraft] = useKept("new key", () => ({ name: "", scope: "read" as Scope, database: "" }));
  const { name, scope, database } = draft;
  const { fault, attempt } = useAttempt();
  const [made, setMade] = useState<{ name: string; key: string } | undefined>(undefined);

  const make = (): Promise<void> =>
    attempt(async () => {
      setMade(undefined);
      const limit = database === "" ? {} : { databases: [database] };
      setMade(await call<{ name: string; key: string }>("POST", "/keys", { name, scope, ...limit }));
      setDraft({ ...draft, name: "" });
      await onMade();
    });

  return (
    <form class="schema-form" aria-label="New key" onSubmit={submitting(() => void make())}>
      <div class="schema-fields">
        <TextField label="Name of the new key" fault={fault} value={name} onInput={(text) => setDraft({ ...draft, name: text })} />
        <Select
          label="Scope"
          value={scope}
          options={[
            ["read", "read"],
            ["write", "write, and read"],
            ["admin", "admin, everything"],
          ]}
          onChoose={(value) => setDraft({ ...draft, scope: value as Scope })}
        />
        <Select
          label="For"
          value={database}
          options={[["", "all databases"], ...(databases.value ?? []).map((entry) => [entry.name, entry.name] as const)]}
          onChoose={(value) => setDraft({ ...draft, database: value })}
        />
      </div>
      <div class="actions">
        <button type="submit">
          <Icon name="plus" /> Create key
        </button>
      </div>
      {made !== undefined && (
        <Notice>
          <p role="status">
            The key {made.name}. Copy it now: it is not shown again. <code class="new-key">{made.key}</code>
          </p>
        </Notice>
      )}
    </form>
  );
}
