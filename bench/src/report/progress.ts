// What is shown while a run goes on: a line per second, in place on a terminal.

import type { SeriesPoint } from "../core/result";
import { formatInteger, formatLatency } from "./format";

export interface Progress {
  point(point: SeriesPoint): void;
  end(): void;
}

export function progressPrinter(
  system: string,
  seconds: number,
  output: NodeJS.WriteStream = process.stdout,
): Progress {
  let isOpen = false;
  const line = (point: SeriesPoint) =>
    `[bench] ${system} ${point.tSec.toFixed(0).padStart(4)}/${seconds} s  ${formatInteger(point.tps).padStart(9)} TPS  ` +
    `p50 ${formatLatency(point.p50_ms)} ms  p99 ${formatLatency(point.p99_ms)} ms`;
  return {
    point: (point) => {
      if (output.isTTY) output.write(`\r\x1b[K${line(point)}`);
      else if (isEnoughForLog(point.tSec)) output.write(`${line(point)}\n`);
      isOpen = output.isTTY;
    },
    end: () => {
      if (isOpen) output.write("\n");
      isOpen = false;
    },
  };
}

/** A log has every second of the first ten, then one in ten. */
const isEnoughForLog = (tSec: number) => tSec < 10.5 || Math.round(tSec) % 10 === 0;
