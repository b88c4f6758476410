/** Asks for a key if the server requires one. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { apiBase } from "./api/client.ts";
import { Field } from "./parts/field.tsx";
import { access, setKey } from "./state/page-session.ts";

export function KeyPrompt(): JSX.Element {
  const [text, setText] = useState("");
  const [keep, setKeep] = useState(false);
  const [fault, setFault] = useState("");
  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    setFault("");
    // Tried before it is stored, so that a wrong key is refused here, in the server's words.
    try {
      const response = await fetch(`${apiBase()}/access`, { headers: { authorization: `Bearer ${text.trim()}` }, cache: "no-store" });
      const answer = (await response.json()) as { message?: string };
      if (!response.ok) {
        setFault(answer.message ?? `The server answered ${response.status}.`);
        return;
      }
      access.value = undefined;
      setKey(text.trim(), keep);
    } catch {
      setFault("The server cannot be reached, or this key contains characters that a header cannot carry.");
    }
  }
  return (
    <form class="card key-prompt" onSubmit={(event) => void submit(event)}>
      <h1>This server requires a key</h1>
      <Field label="API key" fault={fault} hint="The key is kept in this page's memory and sent to this server only.">
        {(ids) => (
          <input
            {...ids}
            type="password"
            autocomplete="off"
            spellcheck={false}
            value={text}
            required
            onInput={(event) => setText(event.currentTarget.value)}
          />
        )}
      </Field>
      <label class="check">
        <input type="checkbox" checked={keep} onChange={(event) => setKeep(event.currentTarget.checked)} />
        Keep it until this tab is closed
      </label>
      <button type="submit" class="primary">
        Open
      </button>
    </form>
  );
}
