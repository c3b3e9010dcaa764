// Each page of the dashboard, used by a script in Chromium, on a real server.

import { readFileSync, writeFileSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openBrowser, Visit } from "../src/visit";
import { DATABASE, World } from "../src/world";

let world: World;
let browser: Browser;
let visit: Visit;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

beforeEach(async () => {
  visit = await Visit.begin(browser, world);
});

afterEach(async () => {
  expect(visit.problems).toEqual([]);
  await visit.close();
});

const at = (path: string) => `db/${DATABASE}/${path}`;

describe("who is there", () => {
  test("a token that is typed is kept only if the visitor says so", async () => {
    const { page } = visit;
    const stored = () => page.evaluate(() => JSON.stringify(localStorage));
    await page.goto(world.page);
    await page.getByLabel("Token").fill(world.token);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: DATABASE }).waitFor();
    expect(await stored()).not.toContain(world.token.slice(0, 20));
    await page.reload();
    await page.getByLabel("Token").fill(world.token);
    await page.getByLabel("Keep me logged in").check();
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByRole("link", { name: DATABASE }).waitFor();
    await page.reload();
    await page.getByRole("link", { name: DATABASE }).waitFor();
    expect(await stored()).toContain(world.token.slice(0, 20));

    // A link with another login asks first.
    const other = await world.server.identity();
    await page.goto("about:blank");
    await page.goto(`${world.page}#token=${other.token}`);
    await page.getByText("brings a login of its own").waitFor();
    expect(page.url()).not.toContain("token");
    await page.getByRole("button", { name: "Stay as I am" }).click();
    await page.getByRole("link", { name: DATABASE }).waitFor();
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Token").waitFor();
    expect(await stored()).not.toContain(world.token.slice(0, 20));
  });

  test("what is no token, and what the server refuses, is said so", async () => {
    const { page } = visit;
    await page.goto(world.page);
    await page.getByLabel("Token").fill("hello");
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("This is no token").waitFor();
    await page.getByLabel("Token").fill(`${world.token.slice(0, -6)}AAAAAA`);
    await page.getByRole("button", { name: "Log in" }).click();
    await page.getByText("Invalid token").waitFor();
  });

  test("a visitor sees what all callers may see", async () => {
    const { page } = visit;
    await page.goto(world.page);
    await page.getByRole("button", { name: "Continue as a visitor" }).click();
    await page.getByLabel("Name or identity of a database").fill(DATABASE);
    await page.getByRole("button", { name: "Open" }).click();
    await visit.go(at("tables/customer"));
    await visit.row("ada.lovelace.0@example.com").waitFor();
    await visit.go(at("tables/audit"));
    await page.getByRole("alert").filter({ hasText: "no such table" }).waitFor();
    await visit.go(at("logs"));
    await page.getByRole("alert").filter({ hasText: "not authorized" }).waitFor();
    await visit.go(at("functions/reducer/restock_one"));
    await page.getByRole("button", { name: "Call" }).click();
    await page.getByText("No such procedure").waitFor();
  });
});

test("databases: names, owners, numbers", async () => {
  const { page } = visit;
  await visit.logIn();
  const row = page.getByRole("row").filter({ hasText: DATABASE });
  await row.getByText("you").waitFor();
  await row.getByText(/[\d.]+ [KM]iB/).waitFor();
  await row.getByText(/1,4\d\d/).waitFor();
  await row.getByRole("link").click();
  await page.getByRole("grid").waitFor();
});

describe("tables", () => {
  test("a row that a call inserts appears by itself", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("tables/order"));
    const byId = page.getByRole("columnheader", { name: "id" }).getByRole("button");
    await byId.click();
    await visit.row("1200").first().waitFor();
    await page.getByRole("status").filter({ hasText: "live" }).waitFor();
    expect(await world.call("place_order", 7, 123_456, { some: "by a call" })).toBe(200);
    await visit.row("123456", "by a call").waitFor();
    await page.getByText("1,201 rows").waitFor();
    await world.sql(`DELETE FROM "order" WHERE total_cents = 123456`).catch(() => {});
  });

  test("a row is edited, inserted and deleted through SQL", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("tables/customer"));
    await visit.row("ada.lovelace.0@example.com").click();
    const panel = page.getByRole("dialog");
    await panel.getByLabel("city").fill("O'Hare");
    await panel.getByText(`UPDATE "customer" SET "city" = 'O''Hare' WHERE "id" = 1`).waitFor();
    await panel.getByRole("button", { name: "Save" }).click();
    await visit.row("ada.lovelace.0@example.com", "O'Hare").waitFor();
    expect(await world.sql("SELECT city FROM customer WHERE id = 1")).toEqual([["O'Hare"]]);

    await page.getByRole("button", { name: "Insert" }).click();
    await panel.getByLabel("name").fill("Niklaus Wirth");
    await panel.getByLabel("email").fill("wirth@example.com");
    await panel.getByLabel("city").fill("Winterthur");
    await panel.getByLabel("joined").fill("2026-02-15T10:00:00Z");
    await panel.getByRole("button", { name: "Insert" }).click();
    await panel.waitFor({ state: "detached" });
    expect(await world.sql("SELECT name FROM customer WHERE email = 'wirth@example.com'")).toEqual([
      ["Niklaus Wirth"],
    ]);

    await page.getByLabel("Column to filter by").selectOption("email");
    await page.getByLabel("Value to filter by").fill("wirth");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByText("1 row", { exact: true }).waitFor();
    await visit.row("wirth@example.com").click();
    await panel.getByRole("button", { name: "Delete" }).click();
    await panel.getByRole("button", { name: "Delete this row" }).click();
    await page.getByText("0 rows").waitFor();
  });

  test("what a module writes is text", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("tables/customer"));
    await page.getByLabel("Column to filter by").selectOption("name");
    await page.getByLabel("Value to filter by").fill("<img");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await visit.row("<img src=x onerror=alert(1)>").click();
    await page.getByRole("dialog").waitFor();
    expect(await page.locator("img, main script").count()).toBe(0);
  });

  test("many rows are scrolled by keys and filtered without a wait", async () => {
    const { page } = visit;
    await world.fillReadings(100_000);
    await visit.logIn();
    await visit.go(at("tables/reading"));
    await page.getByText("100,000 rows").waitFor();
    await visit.row("333").first().waitFor();
    const grid = page.getByRole("grid");
    await grid.focus();
    await page.keyboard.press("End");
    await page.getByRole("gridcell", { name: "99999", exact: true }).waitFor();
    await page.getByRole("status").filter({ hasText: "live" }).waitFor();
    // Only what is on the screen is in the document.
    expect(await page.getByRole("row").count()).toBeLessThan(80);
    await grid.evaluate((element) => {
      element.scrollTop = element.scrollHeight / 2;
    });
    await page.getByRole("gridcell", { name: "50001", exact: true }).waitFor();
    await world.sql("UPDATE reading SET sensor = 4242 WHERE id = 50001");
    await visit.row("50001", "4242").waitFor();
    await page.getByLabel("Column to filter by").selectOption("sensor");
    await page.getByLabel("Value to filter by").fill("4242");
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.getByText("1 row", { exact: true }).waitFor();
  });

  test("schema, events and views", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("tables/order"));
    await page.getByRole("tab", { name: "Schema" }).click();
    await page.getByRole("row").filter({ hasText: "open | paid | shipped | returned" }).waitFor();
    await page.getByText("order_placed_idx_btree").waitFor();
    await visit.go(at("tables/ping"));
    await page.getByText("Waiting for events").waitFor();
    await expect.poll(() => world.call("place_order", 8, 4_321, null)).toBe(200);
    await visit.row("order 12").first().waitFor();
    await visit.go(at("tables/low_stock"));
    await visit.row("SKU-102", "Chair").waitFor();
  });
});

describe("functions", () => {
  test("a reducer is called by its form", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("functions/reducer/place_order"));
    await page.getByLabel("customer").fill("3");
    await page.getByLabel("total_cents").fill("777");
    await page.getByLabel("has a value").check();
    await page.getByLabel("note", { exact: true }).fill("by the form");
    await page.keyboard.press("Control+Enter");
    await page.getByText("Committed").waitFor();
    expect(await world.sql(`SELECT customer FROM "order" WHERE total_cents = 777`)).toEqual([[3]]);
    await page.getByLabel("total_cents").fill("-1");
    await page.getByRole("button", { name: "Call" }).click();
    await page.getByText("an order costs more than nothing").waitFor();
    await page.getByLabel("total_cents").fill("many");
    await page.getByRole("button", { name: "Call" }).click();
    await page.getByText("total_cents: a whole number is wanted").waitFor();
    const calls = page.locator(".stat").filter({ hasText: "Calls" });
    await expect
      .poll(async () => Number((await calls.locator("dd").innerText()).split("\n")[0]))
      .toBeGreaterThan(0);
  });

  test("a procedure says what it returns, a handler where it is", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("functions/procedure/quote"));
    await page.getByLabel("sku").fill("SKU-101");
    await page.getByLabel("pieces").fill("4");
    await page.getByRole("button", { name: "Call" }).click();
    await page.getByText(`"total": 87`).waitFor();
    await visit.go(at("functions/handler/hello"));
    await page.getByText(`/v1/database/${DATABASE}/route/hello`).first().waitFor();
  });
});

describe("SQL", () => {
  test("rows as a table, a chart and JSON; and a change", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("sql"));
    const editor = page.getByLabel("SQL", { exact: true });
    await editor.fill("SELECT sku, stock, price FROM product ORDER BY price DESC LIMIT 3");
    await page.keyboard.press("Control+Enter");
    await visit.row("SKU-109", "119.75").waitFor();
    await page.getByRole("tab", { name: "Chart" }).click();
    expect(await page.locator(".bars rect").count()).toBe(6);
    await page.getByRole("tab", { name: "JSON" }).click();
    await page.getByText(`"sku": "SKU-109"`).waitFor();
    await editor.fill("UPDATE product SET title = 'Sofa' WHERE sku = 'SKU-102'");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByText("1 updated").waitFor();
    await editor.fill("SELEC");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").waitFor();
    expect(await page.getByLabel("History").locator("option").count()).toBe(4);
  });

  test("EXPLAIN is drawn as a tree", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("sql"));
    const text = `SELECT c.name, o.total_cents FROM customer c JOIN "order" o ON o.customer = c.id WHERE c.city = 'Oslo' ORDER BY o.total_cents LIMIT 5`;
    await page.getByLabel("SQL", { exact: true }).fill(text);
    await page.getByRole("button", { name: "Explain" }).click();
    const plan = page.getByRole("list", { name: "Plan" });
    await plan.getByText("at most 5").waitFor();
    await plan.getByText("order_customer_idx_btree").waitFor();
    // The limit, the order, and the two relations below each other.
    expect(await plan.getByRole("listitem").count()).toBe(4);
  });

  test("names of the schema are completed", async () => {
    const { page } = visit;
    await visit.logIn();
    await visit.go(at("sql"));
    const editor = page.getByLabel("SQL", { exact: true });
    await editor.fill("");
    await editor.pressSequentially("SELECT * FROM cust");
    await page.getByRole("option", { name: "customer table" }).waitFor();
    await page.keyboard.press("Tab");
    await editor.pressSequentially(" WHERE is_m");
    await page.getByRole("option", { name: "is_member" }).waitFor();
    await page.keyboard.press("Enter");
    expect(await editor.inputValue()).toBe("SELECT * FROM customer WHERE is_member");
  });
});

test("logs: lines come as they are written, and are filtered", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("logs"));
  const lines = page.getByRole("log");
  await lines.getByText("there is no product").first().waitFor();
  await page.getByLabel("Level").selectOption("Warn");
  await world.call("complain", "<b>the door</b> is stuck");
  await page.getByLabel("Function").selectOption("complain");
  await lines.getByText("<b>the door</b> is stuck").waitFor();
  expect(await lines.locator("b").count()).toBe(0);
  expect(await lines.getByRole("button").count()).toBe(1);
  await page.getByLabel("Text in the lines").fill("window");
  await lines.getByText("No lines").waitFor();
});

test("schedules: what is due, what ran, what failed", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("schedules"));
  const card = page.getByRole("region", { name: "restock", exact: true });
  await card.getByText("every 1 s").first().waitFor();
  await card.getByText("in 4 h").waitFor();
  await card.getByText("there is no product SKU-nothing").first().waitFor();
});

test("module: schema, and what a publish would change", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("module"));
  await page.getByText("Address", { exact: false }).first().waitFor();
  await page.locator("input[type=file]").setInputFiles(world.server.home.path("shop.js"));
  await page.getByText("The schema stays as it is").waitFor();
});

test("module: another program is published, and the one before comes back", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("module"));
  const first = world.server.home.path("shop.js");
  const second = world.server.home.path("shop2.js");
  writeFileSync(second, `${readFileSync(first, "utf8")}\n// Another one.`);
  const program = () => world.sql("SELECT program_hash FROM st_module");
  const before = await program();
  const card = page.getByRole("region", { name: "Publish" });
  await card.locator("input[type=file]").setInputFiles(second);
  await card.getByRole("button", { name: "Publish" }).click();
  await expect.poll(program).not.toEqual(before);
  await card.getByRole("button", { name: "Go back" }).click();
  await card.getByRole("button", { name: "Publish" }).click();
  const earlier = card.getByRole("listitem");
  await expect.poll(() => earlier.count()).toBe(2);
  await earlier.filter({ hasText: "runs" }).waitFor();
  // The log of today has both, and says which one it is.
  const versions = page.getByRole("listitem").filter({ hasText: /^\d\d\/.*runs$/ });
  await versions.first().waitFor();
  expect(await program()).toEqual(before);
});

test("health and live queries: charts with numbers", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("health"));
  await page.getByText("Where the memory is").waitFor();
  await expect.poll(() => page.locator(".chart .line path").count()).toBeGreaterThan(8);
  await visit.go(at("tables/customer"));
  await page.getByRole("status").filter({ hasText: "live" }).waitFor();
  const other = await Visit.begin(browser, world);
  await other.logIn();
  await other.go(at("tables/product"));
  await other.page.getByRole("status").filter({ hasText: "live" }).waitFor();
  await visit.go(at("live"));
  const shapes = page.getByRole("region", { name: "Shapes of live queries" });
  await shapes.getByRole("row").filter({ hasText: "product" }).filter({ hasText: "window" }).waitFor();
  await other.close();
  await page.getByRole("row").filter({ hasText: "subscribe" }).first().waitFor();
});

test("the palette finds pages, tables and functions by a few letters", async () => {
  const { page } = visit;
  await visit.logIn();
  await visit.go(at("tables"));
  await page.getByRole("grid").waitFor();
  await page.keyboard.press("Control+k");
  await page.keyboard.type("plord");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "place_order" }).waitFor();
  await page.locator("h1").click();
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Logs" }).waitFor();
  await page.getByRole("log").focus();
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});
