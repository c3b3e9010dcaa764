// The text format of Prometheus, as far as the server writes it.

export interface Sample {
  labels: string;
  value: number;
}

export type Samples = ReadonlyMap<string, Sample[]>;

/** Samples beyond these are left out. */
const SAMPLES_MAX = 50_000;
const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$/;
/** Histograms are read as JSON; of their text, sum and count are enough. */
const IS_BUCKET = /^\w+_bucket\{/;

export function parseMetrics(text: string): Samples {
  const found = new Map<string, Sample[]>();
  let left = SAMPLES_MAX;
  for (const line of text.split("\n")) {
    if (line.startsWith("#") || IS_BUCKET.test(line)) continue;
    const [, name, labels, value] = LINE.exec(line) ?? [];
    if (name === undefined) continue;
    const samples = found.get(name) ?? [];
    samples.push({ labels: labels ?? "", value: Number(value) });
    found.set(name, samples);
    if (--left === 0) break;
  }
  return found;
}

export const sum = (samples: Samples, name: string): number =>
  (samples.get(name) ?? []).reduce((all, { value }) => all + (Number.isFinite(value) ? value : 0), 0);

export const largest = (samples: Samples, name: string): number =>
  (samples.get(name) ?? []).reduce((all, { value }) => Math.max(all, value), 0);
