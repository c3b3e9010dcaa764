// What the compiler would make of `<p>{text()}</p>` is written out.

import { createComponent, createMemo, createSignal, type JSX } from "solid-js";
import {
  escape,
  getNextElement,
  hydrate,
  insert,
  isServer,
  render,
  ssr,
  ssrHydrationKey,
  template,
} from "solid-js/web";
import { SpacetimeDBProvider, useProcedure, useReducer, useSpacetimeDB, useTable } from "../../src/solid";
import { type DbConnection, procedures, reducers, tables } from "../client/bindings";
import { callbacksOf, type House, type PageProps, peopleBelow, textOf } from "./page";

const paragraph = isServer ? undefined : template("<p>");

function Paragraph({ text }: { text: () => string }): JSX.Element {
  if (isServer) return ssr(["<p", ">", "</p>"], ssrHydrationKey(), escape(text())) as unknown as JSX.Element;
  const element = getNextElement(paragraph as never);
  insert(element, text);
  return element as JSX.Element;
}

function Page({ page }: { page: PageProps }): JSX.Element {
  const state = useSpacetimeDB();
  const [limit, setLimit] = createSignal(10);
  const [enabled, setEnabled] = createSignal(true);
  const people = useTable(() => peopleBelow(limit()), { ...callbacksOf(page), enabled });
  const [rows, isReady] = people;
  const [marks] = useTable(() => tables.mark);
  Object.assign(page.controls, {
    setLimit,
    setEnabled,
    add: useReducer(reducers.addPerson, () => page.limits),
    double: useProcedure(procedures.doubleIt),
    connection: () => state.getConnection<DbConnection>(),
  });
  const text = createMemo(() =>
    textOf(page, state, { rows, isReady: isReady(), error: people.error() }, marks.length),
  );
  return createComponent(Paragraph, { text });
}

export function App({ page }: { page: PageProps }): JSX.Element {
  const [connectionBuilder, setBuilder] = createSignal(page.builder);
  page.controls.setBuilder = (value) => setBuilder(() => value);
  if (page.isOrphan) return createComponent(Page, { page });
  return createComponent(SpacetimeDBProvider<DbConnection>, {
    get connectionBuilder() {
      return connectionBuilder();
    },
    get children() {
      return createComponent(Page, { page });
    },
  });
}

export const solid: House = {
  name: "Solid",
  server: "solid.server.ts",
  show(root, page, hydrates) {
    // What a script of the server's page does.
    if (hydrates)
      Object.assign(globalThis, { _$HY: { events: [], completed: new WeakSet(), r: {}, fe() {} } });
    return (hydrates ? hydrate : render)(() => createComponent(App, { page }), root);
  },
};
