/** Light or dark: as the system says, unless this browser was told otherwise. */
import { effect, signal } from "@preact/signals";

export type Theme = "light" | "dark";

const STORED = "lodestone.theme";
const systemDark = matchMedia("(prefers-color-scheme: dark)");

const chosen = signal<Theme | undefined>(readChoice());
const systemTheme = signal<Theme>(systemDark.matches ? "dark" : "light");

export const currentTheme = (): Theme => chosen.value ?? systemTheme.value;

export function toggleTheme(): void {
  const theme = currentTheme() === "dark" ? "light" : "dark";
  // What the system says anyway needs no choice, and follows it again.
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
