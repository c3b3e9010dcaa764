// A browser that looks at the dashboard, and remembers whatever went wrong there.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { type Browser, type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import type { World } from "./world";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** An answer of the API that refuses something is no fault of the page. */
const IS_REFUSAL = /^Failed to load resource: the server responded with a status of (4|5)\d\d/;

export function openBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: process.env["CHROMIUM"] ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic"],
  });
}

export interface Look {
  width?: number;
  height?: number;
  theme?: "light" | "dark";
}

export class Visit {
  /** Errors of scripts, violations of the policy, dialogs, requests to other servers. */
  readonly problems: string[] = [];

  private constructor(
    readonly world: World,
    readonly context: BrowserContext,
    readonly page: Page,
  ) {}

  static async begin(browser: Browser, world: World, look: Look = {}): Promise<Visit> {
    const { width = 1280, height = 800, theme = "light" } = look;
    const context = await browser.newContext({
      viewport: { width, height },
      colorScheme: theme,
      reducedMotion: "reduce",
    });
    const page = await context.newPage();
    const visit = new Visit(world, context, page);
    visit.#listen();
    return visit;
  }

  #listen(): void {
    const { page, problems, world } = this;
    page.setDefaultTimeout(30_000);
    page.on("pageerror", (error) => problems.push(String(error.stack ?? error)));
    page.on("console", (message) => {
      const text = message.text();
      if (["error", "warning"].includes(message.type()) && !IS_REFUSAL.test(text)) problems.push(text);
    });
    page.on("dialog", (dialog) => {
      problems.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (origin !== new URL(world.page).origin && protocol !== "data:")
        problems.push(`a request to ${request.url()}`);
    });
  }

  /** Opens the page with a login handed in by the address. */
  async logIn(token = this.world.token): Promise<void> {
    await this.page.goto(`${this.world.page}#token=${token}`);
    await this.page.locator("main#content").waitFor();
  }

  async go(path: string): Promise<void> {
    await this.page.evaluate((hash) => {
      location.hash = hash;
    }, `#/${path}`);
  }

  /** A row of the grid that has these texts. */
  row(...texts: string[]): Locator {
    return texts.reduce((rows, text) => rows.filter({ hasText: text }), this.page.getByRole("row"));
  }

  /** What axe finds that is serious. */
  async findings(): Promise<string[]> {
    await this.page.evaluate(AXE);
    return this.page.evaluate(async () => {
      const { axe } = window as unknown as { axe: typeof import("axe-core") };
      const { violations } = await axe.run(document, { resultTypes: ["violations"] });
      const serious = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
      return serious.flatMap(({ id, nodes }) =>
        nodes
          .slice(0, 3)
          .map(
            (node) =>
              `${id}: ${node.html.slice(0, 160)} ${node.failureSummary?.replace(/\s+/g, " ").slice(0, 200)}`,
          ),
      );
    });
  }

  close(): Promise<void> {
    return this.context.close();
  }
}
