// Light, dark, or as the system has it. This is no secret, so it is remembered without a question.

import { Store } from "./store";

export type Theme = "system" | "light" | "dark";

const KEPT_AS = "lightcone.dashboard.theme";
const SYSTEM_IS_DARK = matchMedia("(prefers-color-scheme: dark)");

let theme: Theme = kept();
/** What is shown. */
export const isDark = new Store(false);

function kept(): Theme {
  const found = localStorage.getItem(KEPT_AS);
  return found === "light" || found === "dark" ? found : "system";
}

function apply(): void {
  isDark.set(theme === "dark" || (theme === "system" && SYSTEM_IS_DARK.matches));
  document.documentElement.dataset["theme"] = isDark.get() ? "dark" : "light";
}

export function setTheme(value: Theme): void {
  if (value === "system") localStorage.removeItem(KEPT_AS);
  else localStorage.setItem(KEPT_AS, value);
  theme = value;
  apply();
}

SYSTEM_IS_DARK.addEventListener("change", apply);
apply();
