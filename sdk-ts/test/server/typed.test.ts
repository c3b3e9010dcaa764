// `lightcone/typed` on the built server: a client of the module's sources alone, checked by the compiler and at run time.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, expectTypeOf, test } from "vitest";
import { Server } from "../../../tests/e2e/src/server";
import type { Identity, Timestamp } from "../../src/client";
import {
  type Client,
  createClient,
  fetchSchema,
  loadBindings,
  type NameDoesNotComeBack,
} from "../../src/typed";

type Module = typeof import("./typed_module");

let server: Server;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "lightcone-typed-"));
  server = await Server.start();
  const outfile = join(directory, "module.js");
  await build({
    entryPoints: [join(import.meta.dirname, "typed_module.ts")],
    outfile,
    bundle: true,
    format: "esm",
    target: "es2022",
    external: ["spacetime:sys*"],
    logLevel: "error",
  });
  await server.cliOk("publish", "--js-path", outfile, "--yes", "typed");
});
afterAll(async () => {
  await server?.stop();
  rmSync(directory, { recursive: true, force: true });
});

const connect = (options: { schema?: unknown } = {}) =>
  createClient<Module>({ uri: server.url, databaseName: "typed", ...options });

function applied(client: Client<Module>, subscribe: "all" | "typed"): Promise<void> {
  return new Promise((resolve, reject) => {
    const builder = client
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((_, error) => reject(error));
    if (subscribe === "all") builder.subscribeToAllTables();
    else builder.subscribe((tables) => tables.boardCard.where((card) => card.isDone.eq(false)));
  });
}

test("rows, indexes, views and calls have the names of the sources", async () => {
  const client = await connect();
  await applied(client, "all");
  const { reducers, procedures, db } = client;
  await reducers.addCard({
    slugText: "one",
    nickName: "Uno",
    color: { tag: "LightBlue" },
    shapeKind: { tag: "RoundThing", value: { outerRadius: 1.5 } },
  });
  const [card] = [...db.boardCard.iter()];
  expect(card).toMatchObject({
    cardId: 1n,
    ownerId: client.identity,
    rank2: 7,
    isDone: false,
    nickName: "Uno",
    color: { tag: "LightBlue" },
    shape: { tag: "RoundThing", value: { outerRadius: 1.5 } },
    slugText: "one",
    tagList: ["a", "b"],
  });
  expect(db.boardCard.slugText.find("one")).toBe(card);
  expect([...db.boardCard.slugText.filter("one")]).toEqual([card]);
  expect([...db.boardCard.cardId.filter(1n)]).toEqual([card]);
  expect([...db.boardCard.ownerId.filter(client.identity!)]).toEqual([card]);
  expect([...db.boardCard.byOwnerAndRank.filter([client.identity!, 7])]).toEqual([card]);
  expect([...db.myCards.iter()]).toEqual([card]);
  expect(db.cardCount.count()).toBe(0n);
  // Readers do not see it, and subscribing to all tables leaves it out.
  expect(db.secretNote.count()).toBe(0n);

  const updates: boolean[] = [];
  db.boardCard.onUpdate((_, old, now) => updates.push(old.isDone, now.isDone));
  await reducers.finishCard({ cardId: card!.cardId });
  expect(updates).toEqual([false, true]);

  expect(await procedures.sumUp({ extraCards: 2n })).toEqual({
    cardCount: 3n,
    lastShape: { tag: "RoundThing", value: { outerRadius: 1.5 } },
  });
  expect(await procedures.ping({})).toBe("pong");
  client.disconnect();
});

test("typed queries, options that are left out, errors of reducers, refused calls", async () => {
  const client = await connect({ schema: await fetchSchema(server.wsUrl, "typed") });
  await applied(client, "typed");
  await client.reducers.addCard({ slugText: "two", color: { tag: "Red" }, shapeKind: { tag: "Dot" } });
  const card = client.db.boardCard.slugText.find("two")!;
  expect(card).toMatchObject({ nickName: undefined, color: { tag: "Red" }, shape: { tag: "Dot" } });
  await client.reducers.finishCard({ cardId: card.cardId });
  expect(client.db.boardCard.slugText.find("two")).toBe(null);
  await expect(
    client.reducers.addCard({ slugText: "", color: { tag: "Red" }, shapeKind: { tag: "Dot" } }),
  ).rejects.toThrow("a slug is wanted");
  // The types do not tell it from other reducers; the server does.
  await expect(client.reducers.init({})).rejects.toThrow();
  client.disconnect();
});

test("tables and functions of submodules are below their namespaces", async () => {
  const client = await connect();
  await applied(client, "all");
  await client.reducers["mail.sendLetter"]({ toWhom: "ann" });
  const letters = client.db["mail.sentLetter"];
  expect([...letters.iter()]).toEqual([{ letterId: 1, toWhom: "ann" }]);
  expect(letters.toWhom.find("ann")).toEqual({ letterId: 1, toWhom: "ann" });
  expect(await client.procedures["mail.countLetters"]({})).toBe(1n);
  const { tables, reducers, procedures } = await loadBindings<Module>({
    uri: server.url,
    databaseName: "typed",
  });
  const query = tables["mail.sentLetter"].where((letter) => letter.toWhom.eq("ann"));
  expect(await client.oneOffQuery(query)).toHaveLength(1);
  expect(reducers["mail.sendLetter"].name).toBe("mail.send_letter");
  expect(procedures["mail.countLetters"].name).toBe("mail.count_letters");
  client.disconnect();
});

test("what the database has not is an error that says so", async () => {
  const client = await connect();
  const other = client as unknown as { db: Record<string, unknown>; reducers: Record<string, unknown> };
  expect(() => other.db["absent"]).toThrow("database typed has no absent in db");
  expect(() => other.reducers["absent"]).toThrow(/no absent in reducers.*\[LC0860\]/);
  // Its option `name` is not in its type.
  expect(() => client.procedures.otherName({})).toThrow("no otherName in procedures");
  client.disconnect();
  await expect(createClient<Module>({ uri: server.url, databaseName: "absent" })).rejects.toThrow(
    /did not send the schema of absent: 404/,
  );
});

test("a schema that says too little, or cannot be read", async () => {
  const schema = (await fetchSchema(server.url, "typed")) as { sections: Record<string, unknown>[] };
  const old = { sections: schema.sections.filter((section) => !("ExplicitNames" in section)) };
  await expect(connect({ schema: old })).rejects.toThrow(/too old.*LC0860/);
  await expect(connect({ schema: { sections: [...old.sections, { ExplicitNames: {} }] } })).rejects.toThrow(
    "the schema cannot be read",
  );
});

// Never called: what the compiler says.
function types(client: Client<Module>): void {
  const { db, reducers, procedures } = client;
  type Shape = { tag: "Dot" } | { tag: "RoundThing"; value: { outerRadius: number } };
  const card = db.boardCard.cardId.find(1n)!;
  expectTypeOf(card).branded.toEqualTypeOf<{
    cardId: bigint;
    ownerId: Identity;
    rank2: number;
    isDone: boolean;
    nickName: string | undefined;
    color: { tag: "Red" } | { tag: "LightBlue" };
    shape: Shape;
    slugText: string;
    tagList: string[];
    madeAt: Timestamp;
    userID: NameDoesNotComeBack<"userID">;
    other: NameDoesNotComeBack<"other">;
  }>();
  expectTypeOf(reducers.addCard).parameter(0).branded.toEqualTypeOf<{
    slugText: string;
    nickName?: string | undefined;
    color: { tag: "Red" } | { tag: "LightBlue" };
    shapeKind: Shape;
  }>();
  expectTypeOf(reducers.addCard).returns.toEqualTypeOf<Promise<void>>();
  expectTypeOf(procedures.sumUp).returns.resolves.branded.toEqualTypeOf<{
    cardCount: bigint;
    lastShape: Shape | undefined;
  }>();
  expectTypeOf<keyof typeof reducers>().toEqualTypeOf<
    "init" | "addCard" | "finishCard" | "mail.sendLetter"
  >();
  expectTypeOf<keyof typeof procedures>().toEqualTypeOf<
    "sumUp" | "ping" | "otherName" | "mail.countLetters"
  >();
  expectTypeOf<keyof typeof db>().toEqualTypeOf<
    "boardCard" | "secretNote" | "myCards" | "cardCount" | "mail.sentLetter"
  >();
  expectTypeOf([...db.myCards.iter()][0]!).toEqualTypeOf(card);
  expectTypeOf([...db.cardCount.iter()]).branded.toEqualTypeOf<{ howMany: bigint }[]>();
  // @ts-expect-error: rows of views only come and go.
  db.myCards.onUpdate(() => {});
  // @ts-expect-error: the module's name is not the client's.
  card.owner_id;
  // @ts-expect-error: a type of another parameter.
  reducers.finishCard({ cardId: 1 });
  // @ts-expect-error: variants have a capital.
  reducers.addCard({ slugText: "", color: { tag: "lightBlue" }, shapeKind: { tag: "Dot" } });
  // @ts-expect-error: there is none.
  reducers.absent({});
  // @ts-expect-error: a view is no reducer.
  reducers.cardCount({});
}

test("types", () => expect(types).toBeTypeOf("function"));
