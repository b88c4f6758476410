/** The frame around the views: the current place, navigation, light or dark, whether the server answers, and the prompt for a key. */

import type { FunctionComponent, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { fetchAccess, messageOf } from "./api/client.ts";
import { HomeView } from "./home/home-view.tsx";
import { KeyPrompt } from "./key-prompt.tsx";
import { lazyView } from "./lazy-view.tsx";
import { Icon, type IconName, Mark } from "./parts/icons.tsx";
import { Fault, Waiting } from "./parts/notice.tsx";
import { PlacePicker } from "./place-picker.tsx";
import { SearchView } from "./search/search-view.tsx";
import { access, connection, key, needsKey, setKey } from "./state/page-session.ts";
import { go, hrefOf, route, type View } from "./state/route.ts";
import { catalogFault, firstPlace, loadDatabases, loadTables, settleTable, tables } from "./state/server-content.ts";
import { currentTheme, toggleTheme } from "./state/theme.ts";
import { TableView } from "./table/table-view.tsx";

const SqlView = lazyView(async () => (await import("./sql/sql-view.tsx")).SqlView);
const SchemaView = lazyView(async () => (await import("./schema/schema-view.tsx")).SchemaView);
const ServerView = lazyView(async () => (await import("./server/server-view.tsx")).ServerView);
const ReferenceView = lazyView(async () => (await import("./reference/reference-view.tsx")).ReferenceView);

interface Page {
  readonly view: View;
  readonly title: string;
  readonly icon: IconName;
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
];

export function App(): JSX.Element {
  const isUp = connection.value === "up";
  const { view, place, table } = route.value;
  const placeKey = place === undefined ? "" : `${place.database}:${place.branch}`;
  useEffect(() => {
    if (isUp && !needsKey.value) void enter();
  }, [isUp, key.value]);
  useEffect(() => {
    if (place !== undefined && access.value !== undefined) void loadTables(place);
  }, [placeKey, access.value]);
  useEffect(settleTable, [view, placeKey, table, tables.value]);
  const page = PAGES.find((candidate) => candidate.view === view) ?? (PAGES[0] as Page);
  useEffect(() => {
    document.title = `${page.title} · Lodestone`;
  }, [page]);
  return (
    <div class="frame">
      <button type="button" class="skip" onClick={skipToContent}>
        Skip to the content
      </button>
      <Rail current={page.view} />
      <div class="body">
        <header class="topbar">
          <PlacePicker />
          <span class="spacer" />
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
            The server does not answer. What you have typed stays; the console continues when the server is back.
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
  if (access.value === undefined) return <Waiting what="Asking the server …" />;
  const Component = page.component;
  return (
    <>
      {page.view !== "home" && <h1 class="hidden">{page.title}</h1>}
      <Component />
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
        {PAGES.filter(({ inBranch }) => !inBranch || target !== undefined).map(({ view, title, icon }) => (
          <li key={view}>
            <a
              href={hrefOf(view, view === "home" && place === undefined ? undefined : target, table)}
              aria-current={view === current ? "page" : undefined}
            >
              <Icon name={icon} />
              <span>{title}</span>
            </a>
          </li>
        ))}
      </ul>
      <p class="version">{access.value === undefined ? "" : `version ${access.value.version}`}</p>
    </nav>
  );
}

/** Reads what the key may do, and what is on the server. Errors are shown where they matter: in the key's prompt, the strip, the view. */
async function enter(): Promise<void> {
  try {
    access.value = await fetchAccess();
    await loadDatabases();
    const { view, place } = route.value;
    const first = firstPlace();
    if (view !== "home" && place === undefined && first !== undefined) go(view, first);
  } catch (error) {
    // A user who is in already keeps what is in view; the strip says that the server is away.
    if (access.value === undefined) catalogFault.value = messageOf(error);
  }
}

function leave(): void {
  setKey("", false);
  access.value = undefined;
  needsKey.value = true;
}

/** The fragment is the route, so a link cannot do this. */
function skipToContent(): void {
  document.getElementById("main")?.focus();
}
