// The page that every framework shows in the tests: the people below a number, how many marks there are, and calls.

import type { CallOptions } from "../../src/client";
import { type DbConnection, type DbConnectionBuilder, tables } from "../client/bindings";

/** What a test gives to a page. */
export interface PageProps {
  builder: DbConnectionBuilder;
  keepAliveMs?: number;
  /** Of the calls of `add`. */
  limits?: CallOptions;
  /** Whether there is no provider above. */
  isOrphan?: boolean;
  /** Calls of row callbacks. */
  readonly log: string[];
  /** Each text that was shown, one after the other. */
  readonly seen: string[];
  /** What a test does with the page, which fills it in. */
  readonly controls: Controls;
}

export interface Controls {
  setLimit(limit: number): void;
  setEnabled(enabled: boolean): void;
  setBuilder(builder: DbConnectionBuilder): void;
  add(person: { id: number; name: string }): Promise<void>;
  double(params: { value: number }): Promise<bigint>;
  connection(): DbConnection | null;
}

/** How a framework shows the page. */
export interface House {
  readonly name: string;
  /** The module whose `render` makes the text of the page on a server. */
  readonly server: string;
  /** Shows the page in an element, or takes over what a server has put there; returns how to close it. */
  show(root: HTMLElement, props: PageProps, hydrates: boolean): (() => void) | Promise<() => void>;
}

export type Person = { readonly id: number; readonly name: string };

/** People with a smaller id than `limit`. */
export const peopleBelow = (limit: number) => tables.person.where((person) => person.id.lt(limit));

export const callbacksOf = ({ log, keepAliveMs }: PageProps) => ({
  keepAliveMs,
  onInsert: ({ name }: Person) => void log.push(`+${name}`),
  onDelete: ({ name }: Person) => void log.push(`-${name}`),
  onUpdate: (before: Person, after: Person) => void log.push(`${before.name}>${after.name}`),
});

/** The text of the page. */
export function textOf(
  { seen }: PageProps,
  state: { readonly isActive: boolean; readonly connectionError?: Error },
  people: { rows: readonly Person[]; isReady: boolean; error: Error | undefined },
  marks: number,
): string {
  const problem = (people.error ?? state.connectionError)?.message ?? "";
  const names = people.rows.map(({ name }) => name).join();
  const text = `${state.isActive} ${people.isReady} ${names}/${marks} ${problem}`.trim();
  if (seen.at(-1) !== text) seen.push(text);
  return text;
}
