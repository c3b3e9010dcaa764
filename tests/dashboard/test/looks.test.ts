// How the pages are for those who see little, look at a phone, or use no mouse; and how the server sends them.

import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Look, openBrowser, Visit } from "../src/visit";
import { DATABASE, World } from "../src/world";

const PAGES = [
  "",
  "server",
  ...[
    "tables/customer",
    "functions/reducer/place_order",
    "sql",
    "live",
    "logs",
    "schedules",
    "module",
    "health",
  ].map((page) => `db/${DATABASE}/${page}`),
];
const LOOKS: [string, Look][] = [
  ["light", {}],
  ["dark", { theme: "dark" }],
  ["a phone", { width: 390, height: 844 }],
  ["a phone in the dark", { width: 390, height: 844, theme: "dark" }],
];
/** Of all that the server sends for the page, compressed. */
const BYTES_MAX = 400_000;

let world: World;
let browser: Browser;

beforeAll(async () => {
  [world, browser] = await Promise.all([World.start(40, 80), openBrowser()]);
});

afterAll(async () => {
  await browser?.close();
  await world?.stop();
});

describe.each(LOOKS)("%s", (_, look) => {
  test("axe finds nothing serious, and nothing is wider than the screen", async () => {
    const visit = await Visit.begin(browser, world, look);
    const found: string[] = [];
    await visit.page.goto(world.page);
    await visit.page.getByLabel("Token").waitFor();
    found.push(...(await visit.findings()).map((one) => `login: ${one}`));
    await visit.logIn();
    for (const path of PAGES) {
      await visit.go(path);
      await visit.page.locator("main h1").first().waitFor({ state: "attached" });
      await visit.page.waitForTimeout(1_500);
      found.push(...(await visit.findings()).map((one) => `${path}: ${one}`));
      const wide = await visit.page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      if (wide > 0) found.push(`${path}: ${wide} pixels too wide`);
    }
    await visit.page.keyboard.press("Control+k");
    await visit.page.getByRole("listbox").waitFor();
    found.push(...(await visit.findings()).map((one) => `palette: ${one}`));
    await visit.page.keyboard.press("Escape");
    await visit.go(`db/${DATABASE}/tables/customer`);
    await visit.row("ada.lovelace.0@example.com").click();
    await visit.page.getByRole("dialog").waitFor();
    found.push(...(await visit.findings()).map((one) => `row: ${one}`));
    expect(found).toEqual([]);
    expect(visit.problems).toEqual([]);
    await visit.close();
  });
});

describe("what is sent", () => {
  test("a strict policy, exact types, names that may be kept for ever", async () => {
    const page = await world.server.fetch("/dashboard/");
    expect(page.status).toBe(200);
    expect(page.headers.get("cache-control")).toBe("no-cache");
    const policy = page.headers.get("content-security-policy")!;
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "frame-ancestors 'none'",
      "base-uri 'none'",
      "require-trusted-types-for 'script'",
    ]) {
      expect(policy).toContain(part);
    }
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(page.headers.get("x-content-type-options")).toBe("nosniff");
    expect(page.headers.get("referrer-policy")).toBe("no-referrer");
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
    const again = await world.server.fetch("/dashboard/", {
      headers: { "if-none-match": page.headers.get("etag")! },
    });
    expect(again.status).toBe(304);

    const text = await page.text();
    expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bon\w+=|style=/);
    const names = [...text.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, name]) => name!);
    const types: Record<string, string> = { js: "text/javascript", css: "text/css", svg: "image/svg+xml" };
    let bytes = Number(page.headers.get("content-length") ?? 0);
    for (const name of names) {
      const file = await world.server.fetch(`/dashboard/${name}`);
      expect(file.status, name).toBe(200);
      expect(file.headers.get("content-type"), name).toContain(types[name.split(".").at(-1)!]);
      expect(file.headers.get("cache-control"), name).toContain("immutable");
      expect(file.headers.get("content-encoding"), name).toBe("gzip");
      bytes += Number(file.headers.get("content-length"));
      const fonts = [...(await file.text()).matchAll(/url\("?\.?\/?([\w.-]+\.woff2)/g)];
      for (const [, font] of fonts) {
        const sent = await world.server.fetch(`/dashboard/${font}`);
        expect(sent.headers.get("content-type")).toBe("font/woff2");
        bytes += Number(sent.headers.get("content-length"));
      }
    }
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(BYTES_MAX);
  });

  test("the address without a slash leads to the page; other names lead nowhere", async () => {
    const short = await world.server.fetch("/dashboard", { redirect: "manual" });
    expect([short.status, short.headers.get("location")]).toEqual([308, "dashboard/"]);
    for (const path of ["/dashboard/nothing.js", "/dashboard/..%2fCargo.toml", "/dashboard/index.html.gz"]) {
      expect((await world.server.fetch(path)).status, path).toBe(404);
    }
    const plain = await world.server.fetch("/dashboard/", { headers: { "accept-encoding": "identity" } });
    expect(plain.status).toBe(406);
  });
});
