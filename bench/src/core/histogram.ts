// Latencies (section 5.7): HDR histograms of microseconds, three significant digits, up to 10,000 seconds.

import hdr, { type Histogram as HdrHistogram } from "hdr-histogram-js";
import type { LatencySummary } from "./result";

const highestMicroseconds = 10_000_000_000;

export class LatencyHistogram {
  #hdr: HdrHistogram = hdr.build({
    bitBucketSize: 32,
    numberOfSignificantValueDigits: 3,
    lowestDiscernibleValue: 1,
    highestTrackableValue: highestMicroseconds,
    useWebAssembly: false,
  });
  // The mean is exact, not that of the buckets.
  #sumMicroseconds = 0;

  get count(): number {
    return this.#hdr.totalCount;
  }

  /** Records a time in milliseconds, as whole microseconds, at least 1. */
  record(milliseconds: number): void {
    this.recordMicroseconds(Math.max(1, Math.round(milliseconds * 1000)));
  }

  recordMicroseconds(microseconds: number): void {
    this.#sumMicroseconds += microseconds;
    this.#hdr.recordValue(microseconds > highestMicroseconds ? highestMicroseconds : microseconds);
  }

  /** Records what another histogram has counted, e.g. in another process. */
  recordCount(microseconds: number, count: number): void {
    this.#sumMicroseconds += microseconds * count;
    this.#hdr.recordValueWithCount(Math.min(microseconds, highestMicroseconds), count);
  }

  /** A percentile in milliseconds: the highest value of its bucket, 0 for an empty histogram. */
  percentile(percent: number): number {
    return this.count === 0 ? 0 : this.#hdr.getValueAtPercentile(percent) / 1000;
  }

  add(other: LatencyHistogram): void {
    if (other.count === 0) return;
    this.#hdr.add(other.#hdr);
    this.#sumMicroseconds += other.#sumMicroseconds;
  }

  reset(): void {
    this.#hdr.reset();
    this.#sumMicroseconds = 0;
  }

  summary(): LatencySummary {
    return {
      p50_ms: this.percentile(50),
      p95_ms: this.percentile(95),
      p99_ms: this.percentile(99),
      p999_ms: this.percentile(99.9),
      max_ms: this.percentile(100),
      mean_ms: this.count === 0 ? 0 : this.#sumMicroseconds / this.count / 1000,
    };
  }

  /** What `encode` wrote, e.g. to add up runs. Its mean is that of the buckets. */
  static decode(text: string): LatencyHistogram {
    const histogram = new LatencyHistogram();
    histogram.#hdr = hdr.decodeFromCompressedBase64(text);
    histogram.#sumMicroseconds = histogram.#hdr.mean * histogram.#hdr.totalCount;
    return histogram;
  }

  /** Base64 of the compressed encoding, version 2. */
  encode(): string {
    return hdr.encodeIntoCompressedBase64(this.#hdr);
  }
}
