/** The current database, branch and table, which can be changed from anywhere. */
import type { JSX } from "preact";
import { go, route } from "./state/route.ts";
import { databases, tables } from "./state/server-content.ts";

export function PlacePicker(): JSX.Element | null {
  const { view, place, table } = route.value;
  const found = databases.value ?? [];
  if (place === undefined || found.length === 0) return <span class="picker" />;
  const branches = found.find(({ name }) => name === place.database)?.branches ?? [];
  const tableNames = (tables.value ?? []).map(({ name }) => name);
  return (
    <div class="picker">
      <Choice
        label="Database"
        value={place.database}
        options={found.map(({ name }) => name)}
        onChoose={(database) => {
          const ofIt = found.find(({ name }) => name === database)?.branches ?? [];
          go(view, { database, branch: ofIt.includes("main") ? "main" : (ofIt[0] ?? "main") });
        }}
      />
      <Choice label="Branch" value={place.branch} options={branches} onChoose={(branch) => go(view, { ...place, branch }, table)} />
      {view !== "home" && tableNames.length > 0 && (
        <Choice label="Table" value={table ?? ""} options={tableNames} onChoose={(name) => go(view, place, name)} />
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly string[];
  onChoose: (value: string) => void;
}

function Choice({ label, value, options, onChoose }: ChoiceProps): JSX.Element {
  // What the address names is shown even if it does not exist.
  const all = options.includes(value) ? options : [value, ...options];
  return (
    <label class="choice">
      <span class="choice-label">{label}</span>
      <select value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
        {all.map((option) => (
          <option key={option} value={option} selected={option === value}>
            {option}
          </option>
        ))}
      </select>
    </label>
  );
}
