// @vitest-environment happy-dom
// The hooks in React, in strict mode, on a server in memory.

import * as React from "react";
import { createRoot, hydrateRoot, type Root } from "react-dom/client";
import { renderToString } from "react-dom/server";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { setGlobalLogLevel } from "../../src/client";
import { SpacetimeDBProvider, useProcedure, useReducer, useSpacetimeDB, useTable } from "../../src/react";
import { DbConnection, procedures, reducers, tables } from "../client/bindings";
import { FakeServer, message, personBytes, serverMessage, settle } from "../client/fake_server";

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
  setGlobalLogLevel("error");
});

afterEach(async () => {
  await React.act(async () => root.unmount());
  await settle();
});

const lastConnection: { connection?: DbConnection } = {};

const builder = () =>
  DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName(`db${databases++}`)
    .withWSFn(server.factory)
    .onConnect((connection) => (lastConnection.connection = connection))
    .withReconnect({ baseDelayMs: 0 });

async function render(component: React.FunctionComponent, connectionBuilder = builder()): Promise<void> {
  const tree = h(SpacetimeDBProvider<DbConnection>, { connectionBuilder }, h(component));
  await React.act(async () => root.render(h(React.StrictMode, null, tree)));
  await React.act(settle);
}

const act = (work: () => void): Promise<void> =>
  React.act(async () => {
    work();
    await settle();
  });

const row = (id: number, name: string): Uint8Array => personBytes({ id, name });

function greet(): void {
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
}

/** Subscriptions that the server has and that were not ended, by query. */
function answerSubscriptions(rows: Uint8Array[]): void {
  for (const request of server.socket.take()) {
    if (request.tag === "Subscribe") {
      server.socket.deliver(
        serverMessage.subscribeApplied(request.requestId, request.querySetId, "person", rows),
      );
    } else if (request.tag === "Unsubscribe") {
      server.socket.deliver(
        serverMessage.unsubscribeApplied(request.requestId, request.querySetId, "person", rows),
      );
    }
  }
}

test("one connection in strict mode; its state; closed after the last use", async () => {
  const states: boolean[] = [];
  await render(() => {
    const { isActive, identity, token } = useSpacetimeDB();
    states.push(isActive);
    return h("p", null, isActive ? `${identity?.toHexString().slice(-1)} ${token}` : "offline");
  });
  expect(server.sockets).toHaveLength(1);
  expect(container.textContent).toBe("offline");
  await act(greet);
  expect(container.textContent).toBe("7 secret");
  await React.act(async () => root.unmount());
  await settle();
  expect(server.socket.readyState).toBe(3);
  expect(server.sockets).toHaveLength(1);
  root = createRoot(container);
});

test("useTable: rows of the query, ready when they are there, updated by transactions", async () => {
  const calls: string[] = [];
  const seen = new Set<unknown>();
  await render(() => {
    const [rows, isReady] = useTable(
      tables.person.where((person) => person.id.lt(10)),
      {
        onInsert: ({ name }) => calls.push(`+${name}`),
        onDelete: ({ name }) => calls.push(`-${name}`),
        onUpdate: (old, { name }) => calls.push(`${old.name}>${name}`),
      },
    );
    seen.add(rows);
    return h("p", null, `${isReady} ${rows.map(({ name }) => name).join()}`);
  });
  expect(container.textContent).toBe("false ");
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a"), row(2, "b")]));
  expect(container.textContent).toBe("true a,b");
  expect(calls.splice(0)).toEqual(["+a", "+b"]);

  const delta = {
    querySetId: 1,
    table: "person",
    inserts: [row(2, "c"), row(50, "out of the query")],
    deletes: [row(1, "a"), row(2, "b")],
  };
  const before = seen.size;
  await act(() => server.socket.deliver(serverMessage.transactionUpdate([delta])));
  expect(container.textContent).toBe("true c");
  expect(calls).toEqual(["b>c", "-a"]);
  // One message, one new array.
  expect(seen.size).toBe(before + 1);
});

test("useTable: another query, and none while it is not enabled", async () => {
  let setLimit!: (limit: number) => void;
  await render(() => {
    const [limit, set] = React.useState(5);
    setLimit = set;
    const query = tables.person.where((person) => person.id.lt(limit));
    const [rows, isReady] = useTable(query, { enabled: limit > 0, keepMs: 0 });
    return h("p", null, `${isReady} ${rows.length}`);
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true 1");
  await act(() => setLimit(8));
  expect(container.textContent).toBe("false 1");
  await settle();
  const requests = server.socket.received.map((request) => request.tag);
  expect(requests.sort()).toEqual(["Subscribe", "Unsubscribe"]);
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true 1");
  await act(() => setLimit(0));
  // As in the published package: there is nothing to wait for.
  expect(container.textContent).toBe("true 0");
  await settle();
  expect(server.socket.take()).toMatchObject([{ tag: "Unsubscribe" }]);
});

test("useTable: nothing is rendered for transactions that do not change the result", async () => {
  let renders = 0;
  let others = 0;
  const mine = tables.person.where((person) => person.name.eq("mine"));
  await render(() => {
    const [rows, isReady] = useTable(mine);
    renders += 1;
    return h("p", null, `${isReady} ${rows.length}`);
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "mine")]));
  expect(container.textContent).toBe("true 1");
  const stop = server.socket;
  const before = renders;
  for (let i = 0; i < 20; i++) {
    const delta = {
      querySetId: 1,
      table: "person",
      inserts: [row(1000 + i, "another user's")],
      deletes: i === 0 ? [] : [row(999 + i, "another user's")],
    };
    await act(() => stop.deliver(serverMessage.transactionUpdate([delta])));
    others += 1;
  }
  expect([others, renders - before]).toEqual([20, 0]);
  const delta = { querySetId: 1, table: "person", inserts: [row(2, "mine")], deletes: [] };
  await act(() => stop.deliver(serverMessage.transactionUpdate([delta])));
  expect(container.textContent).toBe("true 2");
  // Strict mode renders twice.
  expect(renders - before).toBe(2);
});

test("components with the same query share a subscription, also with one that comes later", async () => {
  let add!: () => void;
  const Names = (): React.ReactNode => {
    const [rows, isReady] = useTable(tables.person);
    return h("i", null, `${isReady} ${rows.map(({ name }) => name).join()};`);
  };
  await render(() => {
    const [count, set] = React.useState(2);
    add = () => set(3);
    return Array.from({ length: count }, (_, key) => h(Names, { key }));
  });
  await act(greet);
  expect(server.socket.received).toMatchObject([{ tag: "Subscribe" }]);
  await act(() => answerSubscriptions([row(1, "a")]));
  await act(add);
  expect(container.textContent).toBe("true a;true a;true a;");
  await settle();
  expect(server.socket.take()).toEqual([]);
});

test("useTable: rows are kept for a while after their last use, and those of a few queries only", async () => {
  let show!: (limit: number) => void;
  const Names = ({ limit }: { limit: number }): React.ReactNode => {
    const [rows, isReady] = useTable(
      tables.person.where((person) => person.id.lt(limit)),
      { keepAliveMs: 60_000 },
    );
    return h("p", null, `${isReady} ${rows.length}`);
  };
  await render(() => {
    const [limit, set] = React.useState(100);
    show = set;
    return limit > 0 ? h(Names, { key: limit, limit }) : null;
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true 1");
  await act(() => show(0));
  await act(() => show(100));
  expect(container.textContent).toBe("true 1");
  expect(server.socket.take()).toEqual([]);
  for (let limit = 101; limit < 110; limit++) await act(() => show(limit));
  const ended = server.socket.take().filter(({ tag }) => tag === "Unsubscribe");
  // One for each beyond eight, and one as strict mode mounts the last one twice.
  expect(ended).toMatchObject([{ querySetId: 0 }, { querySetId: 1 }]);
});

test("useTable: a refused query is an error of its result, and is asked again by who comes later", async () => {
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  let show!: (isShown: boolean) => void;
  const Names = (): React.ReactNode => {
    const result = useTable(tables.person);
    const [rows, isReady] = result;
    return h("p", null, `${isReady} ${rows.length} ${result.error?.message ?? ""}`);
  };
  await render(() => {
    const [isShown, set] = React.useState(true);
    show = set;
    return isShown ? h(Names) : null;
  });
  await act(greet);
  const [request] = server.socket.take() as { requestId: number; querySetId: number }[];
  await act(() =>
    server.socket.deliver(
      serverMessage.subscriptionError(request!.requestId, request!.querySetId, "no such table"),
    ),
  );
  expect(container.textContent).toBe("false 0 no such table");
  await act(() => show(false));
  await act(() => show(true));
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true 1 ");
  complaints.mockRestore();
});

test("a component never sees one table after and another one before a transaction", async () => {
  const seen: string[] = [];
  await render(() => {
    const [people] = useTable(tables.person);
    const [marks] = useTable(tables.mark);
    seen.push(`${people.length}/${marks.length}`);
    return null;
  });
  await act(greet);
  for (const request of server.socket.take()) {
    if (request.tag !== "Subscribe") continue;
    const table = request.queries[0]!.includes("person") ? "person" : "mark";
    await act(() =>
      server.socket.deliver(serverMessage.subscribeApplied(request.requestId, request.querySetId, table, [])),
    );
  }
  const rows = Array.from({ length: 300 }, (_, i) => row(i, "x"));
  const { connection } = lastConnection;
  // A callback so slow that the page gets its turn between the callbacks of one transaction.
  connection!.db.person.onInsert(() => {
    const end = performance.now() + 0.3;
    while (performance.now() < end);
  });
  seen.length = 0;
  await act(() => {
    server.socket.deliver(
      serverMessage.transactionUpdate([
        { querySetId: 0, table: "person", inserts: rows, deletes: [] },
        { querySetId: 1, table: "mark", inserts: rows, deletes: [] },
      ]),
    );
  });
  await React.act(async () => new Promise((done) => setTimeout(done, 300)));
  expect(new Set(seen)).toEqual(new Set(["300/300"]));
});

test("rows stay while the connection is restored", async () => {
  await render(() => {
    const { isActive } = useSpacetimeDB();
    const [rows, isReady] = useTable(tables.person);
    return h("p", null, `${isActive} ${isReady} ${rows.map(({ name }) => name).join()}`);
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true true a");
  await act(() => server.socket.drop());
  expect(container.textContent).toBe("false true a");
  expect(server.sockets).toHaveLength(2);
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a"), row(2, "b")]));
  expect(container.textContent).toBe("true true a,b");
});

test("useReducer and useProcedure: calls wait for the connection", async () => {
  const results: unknown[] = [];
  await render(() => {
    const addPerson = useReducer(reducers.addPerson);
    const tick = useReducer(reducers.tick);
    const doubleIt = useProcedure(procedures.doubleIt);
    const isFirst = React.useRef(true);
    React.useEffect(() => {
      if (!isFirst.current) return;
      isFirst.current = false;
      addPerson({ id: 1, name: "a" }).then(() => results.push("added"));
      tick().catch((error: Error) => results.push(error.message));
      doubleIt({ value: 4 }).then((value) => results.push(value));
    }, [addPerson, tick, doubleIt]);
    return null;
  });
  await act(greet);
  const calls = server.socket.take();
  expect(calls).toMatchObject([{ name: "add_person" }, { name: "tick" }, { name: "double_it" }]);
  await act(() => {
    server.socket.deliver(serverMessage.reducerOk(calls[0]!.requestId, []));
    server.socket.deliver(serverMessage.reducerError(calls[1]!.requestId, "no"));
    server.socket.deliver(
      serverMessage.procedureResult(
        calls[2]!.requestId,
        message((writer) => writer.writeU64(8n)),
      ),
    );
  });
  expect(results).toEqual(["added", "no", 8n]);
});

test("useReducer with limits", async () => {
  const errors: unknown[] = [];
  const abort = new AbortController();
  let call!: () => Promise<void>;
  await render(() => {
    const tick = useReducer(reducers.tick, { signal: abort.signal });
    call = () => tick().catch((error) => void errors.push(error));
    return null;
  });
  await act(greet);
  await act(() => void call());
  await act(() => abort.abort());
  expect(errors).toEqual([abort.signal.reason]);
});

test("useTable: a semijoin has no rows that fail the condition on its own table", async () => {
  const people = tables.person.where((person) => person.name.eq("a")) as any;
  const query = people.leftSemijoin(tables.mark, (person: any, mark: any) => person.id.eq(mark.id));
  await render(() => {
    const [rows] = useTable(query as typeof tables.person);
    return h("p", null, rows.map(({ name }) => name).join());
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a"), row(2, "b")]));
  expect(container.textContent).toBe("a");
});

test("a connection that fails is an error of the state, and works later", async () => {
  server.refusal = new Error("no server");
  await render(() => {
    const { isActive, connectionError } = useSpacetimeDB();
    return h("p", null, `${isActive} ${connectionError?.message ?? ""}`);
  });
  expect(container.textContent).toBe("false no server");
  server.refusal = undefined;
  await React.act(async () => {
    while (server.sockets.length === 0) await settle();
    await settle();
  });
  await act(greet);
  expect(container.textContent).toBe("true ");
});

test("on a server, nothing is connected", () => {
  const component = () => {
    const [rows, isReady] = useTable(tables.person);
    return h("p", null, `${isReady} ${rows.length}`);
  };
  const html = renderToString(
    h(SpacetimeDBProvider<DbConnection>, { connectionBuilder: builder() }, h(component)),
  );
  expect(html).toBe("<p>false 0</p>");
  expect(server.attempts).toHaveLength(0);
});

test("a page of a server is hydrated without a complaint, and connects then", async () => {
  const complaints = vi.spyOn(console, "error").mockImplementation(() => {});
  const component = () => {
    const [rows, isReady] = useTable(tables.person);
    const [, isOffReady] = useTable(tables.mark, { enabled: false });
    return h("p", null, `${isReady} ${isOffReady} ${rows.length}`);
  };
  const connectionBuilder = builder();
  const tree = h(SpacetimeDBProvider<DbConnection>, { connectionBuilder }, h(component));
  container = document.createElement("div");
  container.innerHTML = renderToString(tree);
  expect(container.textContent).toBe("false true 0");
  await React.act(async () => {
    root = hydrateRoot(container, tree);
    await settle();
  });
  await act(greet);
  await act(() => answerSubscriptions([row(1, "a")]));
  expect(container.textContent).toBe("true true 1");
  expect(complaints.mock.calls).toEqual([]);
  complaints.mockRestore();
});

test("a hook outside of a provider says so", () => {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const component = () => {
    useSpacetimeDB();
    return null;
  };
  expect(() => renderToString(h(component))).toThrow("LC0852");
});
