/** The page: the frame around the views (the current place, navigation, light or dark, whether the server answers), and the prompt for a key. */
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/parts.css";
import "./styles/search.css";
import "./styles/table.css";
import "./styles/sql.css";
import "./styles/schema.css";
import "./styles/server.css";
import "./styles/reference.css";
import { type FunctionComponent, type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { apiBase, fetchAccess, messageOf } from "./api/client.ts";
import { FindButton } from "./find/find-button.tsx";
import { HomeView } from "./home/home-view.tsx";
import { lazyView } from "./lazy-view.tsx";
import { CopyButton } from "./parts/copy-button.tsx";
import { TextField } from "./parts/form.tsx";
import { Icon, type IconName, Mark } from "./parts/icons.tsx";
import { Fault, Waiting } from "./parts/notice.tsx";
import { SearchView } from "./search/search-view.tsx";
import { dropFault, followDrops } from "./state/dropped-file.ts";
import { forgetKept } from "./state/kept.ts";
import { access, connection, key, needsKey, setKey } from "./state/page-session.ts";
import { forgetParams, go, goInstead, hrefOf, lastHrefOf, route, type View } from "./state/route.ts";
import {
  catalogFault,
  currentTable,
  databases,
  firstBranch,
  firstPlace,
  loadDatabases,
  loadTables,
  settleTable,
  tables,
} from "./state/server-content.ts";
import { currentTheme, followPreference, toggleTheme } from "./state/theme.ts";

const TableView = lazyView(() => import("./table/table-view.tsx"), "TableView");
const SqlView = lazyView(() => import("./sql/sql-view.tsx"), "SqlView");
const SchemaView = lazyView(() => import("./schema/schema-view.tsx"), "SchemaView");
const ServerView = lazyView(() => import("./server/server-view.tsx"), "ServerView");
const RecordCard = lazyView(() => import("./record/record-card.tsx"), "RecordCard");
const NewTableView = lazyView(() => import("./new-table/new-table-view.tsx"), "NewTableView");
const ReferenceView = lazyView(() => import("./reference/reference-view.tsx"), "ReferenceView");

interface Page {
  readonly view: View;
  readonly title: string;
  /** undefined: it is not among the views to choose from. */
  readonly icon: IconName | undefined;
  readonly component: FunctionComponent;
  /** Whether it needs an existing branch. */
  readonly inBranch: boolean;
}

const PAGES: readonly Page[] = [
  { view: "home", title: "Home", icon: "home", component: HomeView, inBranch: false },
  { view: "search", title: "Search", icon: "search", component: SearchView, inBranch: true },
  { view: "table", title: "Table", icon: "table", component: TableView, inBranch: true },
  { view: "sql", title: "SQL", icon: "sql", component: SqlView, inBranch: true },
  { view: "schema", title: "Schema", icon: "schema", component: SchemaView, inBranch: false },
  { view: "server", title: "Server", icon: "server", component: ServerView, inBranch: false },
  { view: "reference", title: "API", icon: "reference", component: ReferenceView, inBranch: false },
  { view: "new", title: "New table", icon: undefined, component: NewTableView, inBranch: false },
];

function App(): JSX.Element {
  const isUp = connection.value === "up";
  const { view, place, table, record } = route.value;
  const placeKey = place === undefined ? "" : `${place.database}:${place.branch}`;
  useEffect(() => {
    if (isUp && !needsKey.value) void enter();
  }, [isUp, key.value]);
  useEffect(() => {
    if (place !== undefined && access.value !== undefined) void loadTables(place);
  }, [placeKey, access.value]);
  useEffect(settleTable, [view, placeKey, table, tables.value]);
  const page = PAGES.find((candidate) => candidate.view === view) ?? (PAGES[0] as Page);
  const title = [record, table, page.title, placeKey].filter((part) => part !== undefined && part !== "").join(" · ");
  useEffect(() => {
    document.title = `${title} · Lodestone`;
  }, [title]);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to the content
      </button>
      <Rail current={page.view} />
      <div class="body">
        <header class={view === "home" ? "topbar" : "topbar with-place"}>
          <PlacePicker />
          <span class="spacer" />
          <FindButton />
          <CopyButton label="Copy link" icon="link" text={() => location.href} />
          {access.value !== undefined && access.value.keyName !== null && (
            <button type="button" class="quiet" onClick={leave} title={`Key "${access.value.keyName}", scope ${access.value.scope}`}>
              {access.value.scope} key · forget
            </button>
          )}
          <button
            type="button"
            class="quiet"
            onClick={toggleTheme}
            aria-label={currentTheme() === "dark" ? "Light colours" : "Dark colours"}
          >
            <Icon name={currentTheme() === "dark" ? "sun" : "moon"} />
          </button>
        </header>
        {!isUp && (
          <p class="notice bad strip" role="alert">
            The server is not responding. What you have typed is kept, and the console continues when the server is back.
          </p>
        )}
        {dropFault.value !== "" && (
          <p class="notice strip" role="alert">
            {dropFault.value}
          </p>
        )}
        <main id="main" tabIndex={-1} class={`view view-${page.view}`}>
          {needsKey.value ? <KeyPrompt /> : <Content page={page} />}
        </main>
      </div>
    </div>
  );
}

function Content({ page }: { page: Page }): JSX.Element {
  if (catalogFault.value !== "" && (page.inBranch || access.value === undefined)) return <Fault>{catalogFault.value}</Fault>;
  if (access.value === undefined) return <Waiting what="Connecting …" />;
  const Component = page.component;
  const { view, place, record } = route.value;
  const table = currentTable.value;
  const mayHaveCard = (view === "table" || view === "search") && record !== undefined;
  const hasCard = mayHaveCard && place !== undefined && table !== undefined;
  return (
    <>
      {page.view !== "home" && <h1 class="hidden">{page.title}</h1>}
      {/* Room for the card while the tables are not known: what is there must not move when it comes. */}
      <div class={hasCard || (mayHaveCard && tables.value === undefined) ? "beside-card" : ""}>
        <Component />
        {hasCard && <RecordCard key={record} place={place} table={table} id={record} />}
      </div>
    </>
  );
}

function Rail({ current }: { current: View }): JSX.Element {
  const { place, table } = route.value;
  const target = place ?? firstPlace();
  return (
    <nav class="rail" aria-label="Views">
      <a class="brand" href={hrefOf("home")}>
        <Mark />
        <span>Lodestone</span>
      </a>
      <ul>
        {PAGES.map(
          ({ view, title, icon, inBranch }) =>
            icon !== undefined &&
            (!inBranch || target !== undefined) && (
              <li key={view}>
                <a
                  href={lastHrefOf(view, view === "home" && place === undefined ? undefined : target, table)}
                  aria-current={view === current ? "page" : undefined}
                >
                  <Icon name={icon} />
                  <span>{title}</span>
                </a>
              </li>
            ),
        )}
      </ul>
      <TableList />
      <p class="version">{access.value === undefined ? "" : `version ${access.value.version}`}</p>
    </nav>
  );
}

/** Of the branch; each leads to what is shown now, of that table. */
function TableList(): JSX.Element | null {
  const { view, place, table } = route.value;
  const found = tables.value ?? [];
  if (place === undefined || found.length === 0) return null;
  const target = view === "home" || view === "new" || view === "server" || view === "reference" ? "table" : view;
  return (
    <section class="rail-tables" aria-label="Tables">
      <h2>Tables</h2>
      <ul>
        {found.map(({ name }) => (
          <li key={name}>
            <a href={lastHrefOf(target, place, name)} aria-current={name === table ? "true" : undefined}>
              <bdi>{name}</bdi>
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Reads what the key may do, and what is on the server. Errors are shown where they matter: in the key's prompt, the strip, the view. */
async function enter(): Promise<void> {
  try {
    const isFirst = access.value === undefined;
    access.value = await fetchAccess();
    await loadDatabases();
    const { view, place } = route.value;
    const first = firstPlace();
    // Who makes a table in a server that was empty has made the first database meanwhile, and stays where they are.
    if (view !== "home" && (view !== "new" || isFirst) && place === undefined && first !== undefined) goInstead(view, first);
  } catch (error) {
    // A user who is in already keeps what is in view; the strip says that the server is away.
    if (access.value === undefined) catalogFault.value = messageOf(error);
  }
}

function leave(): void {
  forgetKept();
  forgetParams();
  setKey("", false);
  access.value = undefined;
  needsKey.value = true;
}

/** The fragment is the route, so a link cannot do this. */
function skipToContent(): void {
  document.getElementById("main")?.focus();
}

/** The current database, branch and table, which can be changed from anywhere. */
function PlacePicker(): JSX.Element | null {
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
        onChoose={(database) => go(view, { database, branch: firstBranch(found.find(({ name }) => name === database)) ?? "main" })}
      />
      <Choice label="Branch" value={place.branch} options={branches} onChoose={(branch) => go(view, { ...place, branch }, table)} />
      {view !== "home" && view !== "new" && tableNames.length > 0 && (
        <Choice label="Table" isNarrow value={table ?? ""} options={tableNames} onChoose={(name) => go(view, place, name)} />
      )}
    </div>
  );
}

interface ChoiceProps {
  label: string;
  value: string;
  options: readonly string[];
  /** Only where there is no list at the side. */
  isNarrow?: boolean;
  onChoose: (value: string) => void;
}

function Choice({ label, value, options, isNarrow = false, onChoose }: ChoiceProps): JSX.Element {
  // What the address names is shown even if it does not exist.
  const all = options.includes(value) ? options : [value, ...options];
  return (
    <label class={isNarrow ? "choice narrow" : "choice"}>
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

/** Asks for a key if the server requires one. */
function KeyPrompt(): JSX.Element {
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
      <h1>This server needs a key</h1>
      <TextField
        label="API key"
        fault={fault}
        hint="The key is kept in this page's memory and sent to this server only."
        type="password"
        required
        value={text}
        onInput={setText}
      />
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

followPreference();
followDrops();
render(<App />, document.getElementById("app") as HTMLElement);
