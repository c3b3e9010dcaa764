// What `pnpm run demo` shows (section 7): boxes, spinners, and bars that grow.

import { formatInteger } from "./format";

export interface DemoResult {
  system: string;
  /** Whole number; 0 if it failed. */
  tps: number;
}

const barCells = 40;
const boxColumns = 60;
const frames = 25;
const frameMilliseconds = 40;
const tpsColumns = 10;
const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** At least one cell, all of them for the best. */
export function barOf(tps: number, best: number, share = 1): string {
  const filled = Math.max(1, Math.round((tps / Math.max(1, best)) * barCells * share));
  return "█".repeat(filled) + "░".repeat(barCells - filled);
}

/** The systems with a result, the fastest first. */
export const ranked = (results: readonly DemoResult[]): DemoResult[] =>
  results.filter(({ tps }) => tps > 0).sort((a, b) => b.tps - a.tps);

/** The last sentence; undefined if there is nothing to compare. */
export function verdictOf(results: readonly DemoResult[]): string | undefined {
  const order = ranked(results);
  const fastest = order[0];
  const slowest = order.at(-1);
  if (!fastest || !slowest || fastest.tps === slowest.tps) return undefined;
  return `${fastest.system} is ${Math.round(fastest.tps / slowest.tps)}x faster than ${slowest.system}`;
}

export function box(lines: readonly string[]): string {
  const row = (text: string) => `│ ${text.padEnd(boxColumns - 4)} │`;
  const edge = "─".repeat(boxColumns - 2);
  return [`╭${edge}╮`, ...lines.map(row), `╰${edge}╯`].join("\n");
}

export class DemoDisplay {
  readonly #isLively: boolean;
  #spinning: NodeJS.Timeout | undefined;
  #note = "";

  constructor(
    wantsAnimation: boolean,
    private readonly output: NodeJS.WriteStream = process.stdout,
  ) {
    this.#isLively = wantsAnimation && output.isTTY;
  }

  print(text = ""): void {
    this.output.write(`${text}\n`);
  }

  step(number: number, text: string): void {
    this.print(`\n${this.#style(1, `[${number}/4]`)} ${text}`);
  }

  /** Shows that something is going on until the promise is settled. */
  async during<T>(text: string, action: (note: (text: string) => void) => Promise<T>): Promise<T> {
    this.#note = "";
    const note = (more: string) => {
      this.#note = more;
      if (!this.#isLively) this.print(`  ${text}: ${more}`);
    };
    if (!this.#isLively) this.print(`  ${text}`);
    let frame = 0;
    this.#spinning = this.#isLively
      ? setInterval(() => {
          const wheel = spinner[frame++ % spinner.length] ?? "";
          const room = Math.max(20, (this.output.columns ?? 80) - 2);
          this.output.write(`\r\x1b[K${`  ${wheel} ${text}  ${this.#note}`.slice(0, room)}`);
        }, 80)
      : undefined;
    try {
      const result = await action(note);
      this.#endLine(`  ${this.#style(32, "✓")} ${text}`);
      return result;
    } catch (error) {
      this.#endLine(`  ${this.#style(31, "✗")} ${text}`);
      throw error;
    }
  }

  #endLine(text: string): void {
    clearInterval(this.#spinning);
    this.#spinning = undefined;
    this.output.write(this.#isLively ? `\r\x1b[K${text}\n` : `${text}\n`);
  }

  #style(code: number, text: string): string {
    return this.#isLively ? `\x1b[${code}m${text}\x1b[0m` : text;
  }

  async results(results: readonly DemoResult[]): Promise<void> {
    const order = ranked(results);
    const best = order[0]?.tps ?? 0;
    const nameColumns = Math.max(0, ...order.map(({ system }) => system.length));
    const draw = (share: number) =>
      order.map(({ system, tps }, i) => {
        const bar = this.#style(i === 0 ? 32 : 36, barOf(tps, best, share));
        return `  ${system.padEnd(nameColumns)}  ${bar} ${formatInteger(tps * share).padStart(tpsColumns)} TPS`;
      });
    if (this.#isLively) {
      this.output.write(`${draw(0).join("\n")}\n`);
      for (let frame = 1; frame <= frames; frame++) {
        await new Promise((done) => setTimeout(done, frameMilliseconds));
        // Fast at first, slow at the end.
        const share = 1 - (1 - frame / frames) ** 3;
        this.output.write(
          `\x1b[${order.length}A${draw(share)
            .map((line) => `\x1b[K${line}\n`)
            .join("")}`,
        );
      }
    } else {
      for (const line of draw(1)) this.print(line);
    }
    for (const { system } of results.filter(({ tps }) => tps === 0)) this.print(`  ${system}: failed`);
    const verdict = verdictOf(results);
    if (verdict) this.print(`\n${box([verdict])}`);
  }
}
