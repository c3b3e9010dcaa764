// The place in the page stands behind the `#` of the address, so the server serves one document.

import { Store } from "./store";

export type Place = readonly string[];

function here(): Place {
  const path = location.hash.startsWith("#/") ? location.hash.slice(2) : "";
  return path.split("/").filter(Boolean).map(decode);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export const place = new Store<Place>(here());

addEventListener("hashchange", () => place.set(here()));

export const linkTo = (...parts: string[]): string => `#/${parts.map(encodeURIComponent).join("/")}`;

export function go(...parts: string[]): void {
  location.hash = linkTo(...parts);
}
