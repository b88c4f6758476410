/** Backups of the embedded database: makes them while the server runs, and lists them. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { call } from "../api/client.ts";
import { Fault } from "../parts/notice.tsx";
import { useAttempt } from "../parts/use-attempt.ts";

interface BackupList {
  readonly backups: readonly { readonly name: string; readonly createdAt: string }[];
  readonly isRunning: boolean;
}

export function BackupPanel(): JSX.Element {
  const [list, setList] = useState<BackupList | undefined>(undefined);
  const [isBusy, setBusy] = useState(false);
  const [said, setSaid] = useState("");
  const { fault, attempt } = useAttempt();

  const read = (): Promise<void> => attempt(async () => setList(await call<BackupList>("GET", "/backups")));
  useEffect(() => void read(), []);

  async function make(): Promise<void> {
    setBusy(true);
    setSaid("");
    await attempt(async () => {
      const { path, seconds } = await call<{ path: string; seconds: number }>("POST", "/backups");
      setSaid(`Done in ${seconds.toFixed(1)} s: ${path}`);
      setList(await call<BackupList>("GET", "/backups"));
    });
    setBusy(false);
  }

  return (
    <section class="card schema-panel" aria-label="Backups">
      <div class="heading">
        <h2>Backups</h2>
        <button type="button" disabled={isBusy || list?.isRunning === true} onClick={() => void make()}>
          {isBusy || list?.isRunning === true ? "In progress …" : "Back up now"}
        </button>
      </div>
      {fault !== "" && <Fault>{fault}</Fault>}
      <p class="small" role="status">
        {said}
      </p>
      {list?.backups.length === 0 && <p class="muted">None yet.</p>}
      <ul class="column-list backup-list" aria-label="Backups, newest first">
        {list?.backups.map(({ name, createdAt }) => (
          <li key={name} class="column-line">
            <span class="column-name">{name}</span>
            <span class="type">{new Date(createdAt).toLocaleString()}</span>
          </li>
        ))}
      </ul>
      <p class="muted small">
        A backup is a data directory of its own. <code>lodestone restore</code> puts it back.
      </p>
    </section>
  );
}
