/**
 * CodeMirror with PostgreSQL's keywords, the branch's tables and columns, and the position of the last error. Its
 * styles are adopted style sheets of a shadow root, which the page's policy allows.
 */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { PostgreSQL, sql } from "@codemirror/lang-sql";
import { bracketMatching, HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Compartment, EditorState, Prec } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { SYSTEM_COLUMNS } from "../../filter/system-columns.ts";
import type { TableSchema } from "../state/server-content.ts";

interface SqlEditorProps {
  /** The initial text. After that the editor holds the text and reports its changes. */
  start: string;
  /** Replaces the text, once for each object. */
  replacement: { readonly text: string } | undefined;
  tables: readonly TableSchema[];
  /** The table whose columns are completed even where no table is named. */
  table: string | undefined;
  /** Why the statement was refused, and the offset where it is wrong, if that is known. */
  fault: { readonly at: number | undefined; readonly message: string } | undefined;
  onChange: (text: string) => void;
  onRun: () => void;
}

const THEME = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--card)", fontSize: "14px", minHeight: "150px", borderRadius: "8px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", padding: "12px 0", caretColor: "var(--text)" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-gutters": { backgroundColor: "transparent", color: "var(--muted)", border: "none" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--accent-soft)",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--raised)",
    color: "var(--text)",
    border: "1px solid var(--line)",
    borderRadius: "8px",
    overflow: "hidden",
  },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--accent-text)" },
  ".cm-placeholder": { color: "var(--muted)" },
  ".cm-scroller": { maxHeight: "45vh" },
});

const COLORS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--warn)" },
  { tag: tags.comment, color: "var(--muted)", fontStyle: "italic" },
]);

export function SqlEditor({ start, replacement, tables, table, fault, onChange, onRun }: SqlEditorProps): JSX.Element {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const language = useRef(new Compartment());
  const handlers = useRef({ onChange, onRun });
  handlers.current = { onChange, onRun };

  useEffect(() => {
    const element = host.current as HTMLDivElement;
    const runStatement = (): boolean => {
      handlers.current.onRun();
      return true;
    };
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const editor = new EditorView({
      parent: root,
      root,
      state: EditorState.create({
        doc: start,
        extensions: [
          Prec.highest(keymap.of([{ key: "Mod-Enter", run: runStatement }])),
          lineNumbers(),
          history(),
          drawSelection(),
          bracketMatching(),
          closeBrackets(),
          highlightActiveLine(),
          // Their symbols need a font that not every machine has.
          autocompletion({ icons: false }),
          // Tab leaves the editor, as keyboard users expect of a field.
          keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap]),
          language.current.of(languageOf(tables, table)),
          syntaxHighlighting(COLORS),
          THEME,
          placeholder('SELECT * FROM "…"'),
          EditorView.lineWrapping,
          EditorView.contentAttributes.of({ "aria-label": "SQL statement" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) handlers.current.onChange(update.state.doc.toString());
          }),
        ],
      }),
    });
    view.current = editor;
    return () => {
      editor.destroy();
      view.current = undefined;
    };
  }, []);

  useEffect(() => {
    view.current?.dispatch({ effects: language.current.reconfigure(languageOf(tables, table)) });
  }, [tables, table]);

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined || replacement === undefined) return;
    editor.dispatch({ changes: { from: 0, to: editor.state.doc.length, insert: replacement.text } });
  }, [replacement]);

  useEffect(() => {
    const editor = view.current;
    if (editor === undefined) return;
    const { length } = editor.state.doc;
    const marks = fault?.at === undefined ? [] : [markAt(editor.state, Math.min(fault.at, length), fault.message)];
    editor.dispatch(setDiagnostics(editor.state, marks));
  }, [fault]);

  return <div class="sql-editor" ref={host} />;
}

/** Marks the word or the quoted name there, or the last character if the statement ends too early. */
function markAt(state: EditorState, at: number, message: string) {
  const from = Math.min(at, Math.max(0, state.doc.length - 1));
  const token = /^(?:"[^"]*"?|'[^']*'?|[\p{L}\p{N}_]+)/u.exec(state.sliceDoc(from));
  return { from, to: Math.min(state.doc.length, from + (token?.[0].length ?? 1)), severity: "error" as const, message };
}

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function languageOf(tables: readonly TableSchema[], table: string | undefined) {
  const schema = Object.fromEntries(
    tables.map(({ name, columns }) => [
      name,
      [...SYSTEM_COLUMNS, ...columns.map((column) => column.name)].map((label) => ({
        label,
        apply: quoted(label),
        type: "property",
      })),
    ]),
  );
  return sql({ dialect: PostgreSQL, schema, upperCaseKeywords: true, ...(table === undefined ? {} : { defaultTable: table }) });
}
