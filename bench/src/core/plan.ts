// What is to be run, in which order.

import type { Config } from "../config";
import type { FoundTestCase } from "../tests/test_cases";

export interface Load {
  alpha: number;
  concurrency: number;
  /** Undefined: not pipelined. */
  inFlight: number | undefined;
}

export interface Block {
  /** 1-based. */
  run: number;
  found: FoundTestCase;
  loads: Load[];
}

const matrixAlphas = [0, 1.5];
const matrixInFlight = 40;

/** The loads that every connector gets. */
export function loadsOf(config: Config): Load[] {
  const { concurrency } = config;
  if (config.matrix) {
    return matrixAlphas.flatMap((alpha) => [
      { alpha, concurrency, inFlight: undefined },
      { alpha, concurrency, inFlight: matrixInFlight },
    ]);
  }
  const inFlight = config.benchPipelined ? config.maxInflightPerWorker : undefined;
  return config.alphas.map((alpha) => ({ alpha, concurrency, inFlight }));
}

/**
 * Every connector once per repetition, each with all of its loads. The order rotates from one repetition to the next, so
 * that what the one before left behind does not always meet the same system (section 12).
 */
export function planOf(config: Config, cases: readonly FoundTestCase[]): Block[] {
  const loads = loadsOf(config);
  const blocks: Block[] = [];
  for (let run = 1; run <= config.runs; run++) {
    const first = (run - 1) % Math.max(1, cases.length);
    const rotated = [...cases.slice(first), ...cases.slice(0, first)];
    for (const found of rotated) blocks.push({ run, found, loads });
  }
  return blocks;
}
