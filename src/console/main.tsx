/** The page's start. */
import "./styles/console.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { followPreference } from "./state/theme.ts";

followPreference();
render(<App />, document.getElementById("app") as HTMLElement);
