// Takes the pictures of docs/images from the real page, with calls going on.

import { join } from "node:path";
import { test } from "vitest";
import { openBrowser, Visit } from "../src/visit";
import { DATABASE, World } from "../src/world";

const IMAGES = join(import.meta.dirname, "../../../docs/images");
const WARM_UP_MS = 45_000;

test("pictures", async () => {
  const world = await World.start();
  const browser = await openBrowser();
  let isOver = false;
  const orders = (async () => {
    for (let at = 0; !isOver; at++) {
      await world.call(
        "place_order",
        1 + (at % 200),
        900 + ((at * 6_113) % 40_000),
        at % 4 ? null : { some: "gift" },
      );
      await new Promise((done) => setTimeout(done, 20 + 60 * Math.abs(Math.sin(at / 40))));
    }
  })();
  const visit = await Visit.begin(browser, world, { width: 1280, height: 760 });
  await visit.logIn();
  await visit.page.waitForTimeout(WARM_UP_MS);
  const take = async (name: string, path: string, theme: "light" | "dark") => {
    await visit.page.emulateMedia({ colorScheme: theme });
    await visit.go(`db/${DATABASE}/${path}`);
    await visit.page.waitForTimeout(4_000);
    await visit.page.screenshot({ path: join(IMAGES, `dashboard-${name}.png`) });
  };
  await visit.go(`db/${DATABASE}/tables/order`);
  await visit.page.getByRole("columnheader", { name: "id" }).getByRole("button").click();
  await take("tables", "tables/order", "light");
  await take("functions", "functions/reducer/place_order", "dark");
  await visit.page.emulateMedia({ colorScheme: "light" });
  await visit.go(`db/${DATABASE}/sql`);
  const text = `SELECT c.name, o.total_cents, o.placed\nFROM customer c JOIN "order" o ON o.customer = c.id\nWHERE c.city = 'Oslo' AND o.total_cents > 20000\nORDER BY o.total_cents DESC LIMIT 20`;
  await visit.page.getByLabel("SQL", { exact: true }).fill(text);
  await visit.page.getByRole("button", { name: "Explain" }).click();
  await visit.page.getByRole("list", { name: "Plan" }).waitFor();
  await visit.page.screenshot({ path: join(IMAGES, "dashboard-sql.png") });
  isOver = true;
  await orders;
  await browser.close();
  await world.stop();
});
