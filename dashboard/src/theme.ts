// Light, dark, or as the system has it. This is no secret, so it is remembered without a question.

import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

const KEPT_AS = "lightcone.dashboard.theme";
const DARK = matchMedia("(prefers-color-scheme: dark)");

function kept(): Theme {
  const found = localStorage.getItem(KEPT_AS);
  return found === "light" || found === "dark" ? found : "system";
}

export const theme = new Store<Theme>(kept());

export const isDark = (): boolean => theme.get() === "dark" || (theme.get() === "system" && DARK.matches);

function apply(): void {
  document.documentElement.dataset["theme"] = isDark() ? "dark" : "light";
}

export function setTheme(value: Theme): void {
  if (value === "system") localStorage.removeItem(KEPT_AS);
  else localStorage.setItem(KEPT_AS, value);
  theme.set(value);
}

theme.subscribe(apply);
DARK.addEventListener("change", apply);
apply();
