// @vitest-environment happy-dom
// Components that wait for their rows, where the framework has a way to say so.

import { createComponent, ErrorBoundary, Suspense as SolidSuspense } from "solid-js";
import { render } from "solid-js/web";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createApp, defineComponent, h, Suspense } from "vue";
import { setGlobalLogLevel } from "../../src/client";
import * as solid from "../../src/solid";
import * as vue from "../../src/vue";
import { DbConnection, type DbConnectionBuilder, tables } from "../client/bindings";
import { FakeServer, personBytes, serverMessage, settle } from "../client/fake_server";

let server: FakeServer;
let root: HTMLElement;
let close: () => void;
let databases = 0;

beforeEach(() => {
  server = new FakeServer();
  root = document.createElement("div");
  setGlobalLogLevel("error");
});

afterEach(async () => {
  close();
  await settle();
  vi.restoreAllMocks();
});

const builder = (): DbConnectionBuilder =>
  DbConnection.builder()
    .withUri("ws://localhost:1")
    .withDatabaseName(`suspense${databases++}`)
    .withWSFn(server.factory);

async function subscription(): Promise<{ requestId: number; querySetId: number }> {
  await settle();
  server.socket.open();
  server.socket.deliver(serverMessage.initialConnection("secret"));
  await settle();
  const [request] = server.socket.take();
  if (request?.tag !== "Subscribe") throw new Error("no subscription");
  return request;
}

async function answer(): Promise<void> {
  const { requestId, querySetId } = await subscription();
  expect(root.textContent).toBe("loading");
  const rows = [personBytes({ id: 1, name: "a" })];
  server.socket.deliver(serverMessage.subscribeApplied(requestId, querySetId, "person", rows));
  await settle();
}

async function refuse(): Promise<void> {
  vi.spyOn(console, "error").mockImplementation(() => {});
  const { requestId, querySetId } = await subscription();
  server.socket.deliver(serverMessage.subscriptionError(requestId, querySetId, "no such table"));
  await settle();
}

describe("Vue", () => {
  function show(): void {
    const Names = defineComponent(async () => {
      const people = vue.useTable(tables.person);
      const [rows] = people;
      const failure = await people.whenReady().then(
        () => "",
        (error: Error) => error.message,
      );
      return () => h("p", `${rows.value.map(({ name }) => name).join()}${failure}`);
    });
    const content = () => h(Suspense, null, { default: h(Names), fallback: h("p", "loading") });
    const app = createApp({
      render: () => h(vue.SpacetimeDBProvider, { connectionBuilder: builder() }, content),
    });
    app.mount(root);
    close = () => app.unmount();
  }

  test("setup awaits the rows", async () => {
    show();
    await answer();
    expect(root.textContent).toBe("a");
  });

  test("setup sees the refusal", async () => {
    show();
    await refuse();
    expect(root.textContent).toBe("no such table");
  });
});

describe("Solid", () => {
  function show(): void {
    const Names = () => {
      const [rows, isReady] = solid.useTable(() => tables.person, { suspense: true });
      return (() => `${isReady()} ${rows.map(({ name }) => name).join()}`) as unknown as Element;
    };
    close = render(
      () =>
        createComponent(solid.SpacetimeDBProvider<DbConnection>, {
          connectionBuilder: builder(),
          get children() {
            return createComponent(ErrorBoundary, {
              fallback: (error: Error) => error.message,
              get children() {
                return createComponent(SolidSuspense, {
                  fallback: "loading",
                  get children() {
                    return createComponent(Names, {});
                  },
                });
              },
            });
          },
        }),
      root,
    );
  }

  test("what reads isReady is suspended", async () => {
    show();
    await answer();
    expect(root.textContent).toBe("true a");
  });

  test("a refusal goes to the boundary", async () => {
    show();
    await refuse();
    expect(root.textContent).toBe("no such table");
  });
});
