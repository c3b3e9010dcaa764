// Pictures of charts, by a headless Chromium where there is one.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runCommand } from "../init/commands";
import { chartStyle } from "./theme";

const browsers = [process.env["CHROME_BIN"], "chromium", "chromium-browser", "google-chrome"];
/** Pixels per unit of the drawing: sharp on good screens. */
const deviceScale = 2;
const chartWidth = 700;
const padding = 12;

export async function findBrowser(): Promise<string | undefined> {
  for (const browser of browsers) {
    if (!browser) continue;
    try {
      await runCommand(browser, ["--version"]);
      return browser;
    } catch {
      // Not this one.
    }
  }
  return undefined;
}

const heightOf = (svg: string) => Number(/viewBox="0 0 \d+ (\d+)"/.exec(svg)?.[1] ?? 340);

/** Draws charts below each other, light, into one file. */
export async function writePng(browser: string, charts: readonly string[], path: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "lightcone-chart-"));
  const html = join(directory, "chart.html");
  const height = charts.reduce((sum, chart) => sum + heightOf(chart) + padding, padding);
  const body = charts.map((chart) => `<div>${chart}</div>`).join("\n");
  const style = `${chartStyle} body { margin: 0; padding: ${padding}px; background: #fff; } svg { display: block; width: ${chartWidth}px; margin-bottom: ${padding}px; }`;
  writeFileSync(html, `<!doctype html><meta charset="utf-8"><style>${style}</style>${body}`);
  try {
    await runCommand(browser, [
      ...["--headless=new", "--disable-gpu", "--no-sandbox", "--hide-scrollbars", "--disable-dev-shm-usage"],
      `--user-data-dir=${join(directory, "profile")}`,
      `--force-device-scale-factor=${deviceScale}`,
      `--window-size=${chartWidth + 2 * padding},${height}`,
      `--screenshot=${path}`,
      `file://${html}`,
    ]);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
