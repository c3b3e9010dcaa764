// @vitest-environment happy-dom
// Which builders share a connection, and how a page gets over one that is dead.

import * as React from "react";
import { createRoot, type Root } from "react-dom/client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ClientError, setGlobalLogLevel } from "../../src/client";
import { SpacetimeDBProvider, useSpacetimeDB, useTable } from "../../src/react";
import { DbConnection, type DbConnectionBuilder, tables } from "../client/bindings";
import { FakeServer, personBytes, serverMessage, settle } from "../client/fake_server";

const { createElement: h } = React;
(globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;

let server: FakeServer;
let root: Root;
let container: HTMLElement;
let databases = 0;

beforeEach(() => {
  server = new FakeServer();
  container = document.createElement("div");
  root = createRoot(container);
  databases += 1;
  setGlobalLogLevel("error");
});

afterEach(async () => {
  await React.act(async () => root.unmount());
  await settle();
});

const refusal = new ClientError("LC0832", "Failed to verify token: Unauthorized");
const builder = (token?: string): DbConnectionBuilder =>
  DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName(`sessions${databases}`)
    .withWSFn(server.factory)
    .withToken(token);

function State(): React.ReactNode {
  const { isActive, token, connectionError } = useSpacetimeDB();
  const [rows] = useTable(tables.person);
  return h("p", null, `${isActive} ${token} ${connectionError?.message ?? ""} ${rows.length}`);
}

const provider = (connectionBuilder: DbConnectionBuilder, key?: string) =>
  h(SpacetimeDBProvider<DbConnection>, { connectionBuilder, key }, h(State));

async function render(tree: React.ReactNode): Promise<void> {
  await React.act(async () => {
    root.render(h(React.StrictMode, null, tree));
    await settle();
  });
  await React.act(settle);
}

const act = (work: () => void): Promise<void> =>
  React.act(async () => {
    work();
    await settle();
  });

function greet(token: string): void {
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection(token));
}

test("a rendering that React throws away leaves no trace", async () => {
  const Later = (): React.ReactNode => React.use(new Promise<never>(() => {}));
  let attempt = 0;
  let tryAnother!: () => void;
  let again!: () => void;
  const Page = (): React.ReactNode => {
    const [isOther, setOther] = React.useState(false);
    const [, count] = React.useReducer((n: number) => n + 1, 0);
    tryAnother = () => React.startTransition(() => setOther(true));
    again = count;
    // Functions for tokens are often made while rendering: each is another one.
    const own = builder().withToken(() => `own ${attempt++}`);
    const tree = { connectionBuilder: isOther ? builder("another") : own };
    return h(SpacetimeDBProvider<DbConnection>, tree, isOther ? h(Later) : h(State));
  };
  await render(h(Page));
  await act(() => greet("secret"));
  await act(() => tryAnother());
  await act(() => again());
  await act(() => again());
  expect(server.sockets).toHaveLength(1);
});

const tokens = (): unknown[] => server.attempts.map(({ authToken }) => authToken);

test("a refused token: another builder, without it, is a connection of its own", async () => {
  server.refusal = refusal;
  await render(provider(builder("stale")));
  expect(container.textContent).toBe(`false stale ${refusal.message} 0`);
  server.refusal = undefined;
  await render(provider(builder()));
  await act(() => greet("fresh"));
  expect(container.textContent).toBe("true fresh  0");
  expect(tokens()).toEqual(["stale", undefined]);
});

test("a dead connection is not handed out again", async () => {
  server.refusal = refusal;
  const same = builder("stale");
  await render(provider(same, "1"));
  server.refusal = undefined;
  // The next page uses the same builder.
  await render(provider(same, "2"));
  await act(() => greet("x"));
  expect(container.textContent).toBe("true stale  0");
  expect(tokens()).toEqual(["stale", "stale"]);
});

test("another builder of the same session is another try, and tries come ever slower", async () => {
  server.refusal = refusal;
  await render(provider(builder("stale")));
  // Builders made in a component are others at each rendering.
  for (let i = 0; i < 20; i++) await render(provider(builder("stale")));
  expect(server.attempts.length).toBeGreaterThan(1);
  expect(server.attempts.length).toBeLessThan(8);
});

test("builders made at each rendering keep the connection, also when its token has been stored", async () => {
  let stored: string | undefined;
  const made = (): DbConnectionBuilder => builder(stored).onConnect((_, __, token) => (stored = token));
  await render(provider(made()));
  await act(() => greet("first"));
  expect(stored).toBe("first");
  for (let i = 0; i < 3; i++) await render(provider(made()));
  expect(container.textContent).toBe("true first  0");
  // Another page asks for the session of the stored token.
  await render([provider(made(), "1"), provider(made(), "2")]);
  expect(server.sockets).toHaveLength(1);
});

test("functions for tokens made at each rendering keep the connection", async () => {
  const made = (): DbConnectionBuilder => builder().withToken(() => "asked");
  await render(provider(made()));
  await act(() => greet("x"));
  await render(provider(made()));
  expect(container.textContent).toBe("true asked  0");
  expect(server.sockets).toHaveLength(1);
});

test("two users on one page have two connections, and hooks follow a change of the user", async () => {
  await render([provider(builder("ann"), "1"), provider(builder("bob"), "2")]);
  expect(tokens()).toEqual(["ann", "bob"]);
  await render(provider(builder("ann"), "1"));
  await act(() => {
    const [ann, bob] = server.sockets;
    expect([ann!.readyState, bob!.readyState]).toEqual([0, 3]);
    ann!.open();
    ann!.deliver(serverMessage.initialConnection("x"));
    ann!.deliver(serverMessage.subscribeApplied(0, 0, "person", [personBytes({ id: 1, name: "Al" })]));
  });
  expect(container.textContent).toBe("true ann  1");
  await render(provider(builder("cleo"), "1"));
  expect(container.textContent).toBe("false cleo  0");
  expect(server.sockets[0]!.readyState).toBe(3);
});

test("an application that disconnects stays disconnected while it renders", async () => {
  let connection: DbConnection | undefined;
  const made = (): DbConnectionBuilder => builder("ann").onConnect((found) => (connection = found));
  await render(provider(made()));
  await act(() => greet("x"));
  await act(() => connection!.disconnect());
  await render(provider(made()));
  expect(server.attempts).toHaveLength(1);
  await render(provider(made(), "another page"));
  expect(server.attempts).toHaveLength(2);
});
