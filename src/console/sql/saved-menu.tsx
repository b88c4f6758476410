/** The statements that are saved under a name: to take one, to delete one, to save what is in the editor. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { messageOf, type Place } from "../api/client.ts";
import { submitting, TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Menu } from "../parts/menu.tsx";
import { deleteStatement, type SavedStatement, savedStatements, saveStatement } from "./sql-statements.ts";

interface SavedMenuProps {
  place: Place;
  /** What is in the editor. */
  text: string;
  params: string;
  onTake: (statement: SavedStatement) => void;
}

export function SavedMenu({ place, text, params, onTake }: SavedMenuProps): JSX.Element {
  const [saved, setSaved] = useState(() => savedStatements(place));
  const [name, setName] = useState("");
  const [fault, setFault] = useState("");

  function change(work: () => void): void {
    setFault("");
    try {
      work();
    } catch (error) {
      setFault(messageOf(error));
    }
    setSaved(savedStatements(place));
  }

  const save = (): void =>
    change(() => {
      saveStatement(place, { name: name.trim(), text, params });
      setName("");
    });

  return (
    <Menu label="Saved">
      {saved.length > 0 && (
        <ul class="saved" aria-label="Saved statements">
          {saved.map((statement) => (
            <li key={statement.name}>
              <button type="button" class="quiet" title={statement.text} onClick={() => onTake(statement)}>
                <bdi>{statement.name}</bdi>
              </button>
              <button
                type="button"
                class="quiet"
                aria-label={`Delete the saved statement ${statement.name}`}
                onClick={() => change(() => deleteStatement(place, statement.name))}
              >
                <Icon name="trash" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <form class="stack" onSubmit={submitting(save)}>
        <TextField label="Name" hint="This browser keeps it." fault={fault} value={name} onInput={setName} />
        <button type="submit">Save the statement</button>
      </form>
    </Menu>
  );
}
