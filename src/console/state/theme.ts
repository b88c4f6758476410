/** Light or dark: the system's setting, unless the user chose otherwise in this browser. */
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const STORED = "lodestone.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");

const chosen = signal<Theme | undefined>(readChoice());
const systemTheme = signal<Theme>(systemDark.matches ? "dark" : "light");

export const currentTheme = (): Theme => chosen.value ?? systemTheme.value;

export function toggleTheme(): void {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  // A choice equal to the system's setting is dropped, so that the page follows the system again.
  chosen.value = theme === systemTheme.value ? undefined : theme;
  if (chosen.value === undefined) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, chosen.value);
}

export function followPreference(): void {
  systemDark.addEventListener("change", ({ matches }) => {
    systemTheme.value = matches ? "dark" : "light";
  });
  effect(() => {
    document.documentElement.dataset.theme = currentTheme();
  });
}

function readChoice(): Theme | undefined {
  const stored = localStorage.getItem(STORED);
  return stored === "light" || stored === "dark" ? stored : undefined;
}
