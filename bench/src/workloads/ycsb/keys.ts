// Keys of YCSB and the distributions that choose them (section 15.2).

import type { Random } from "../random";

/** 64 bits as two words of 32. */
interface Words {
  high: number;
  low: number;
}

const two32 = 4294967296;
const offsetBasis: Readonly<Words> = { high: 0xcbf29ce4, low: 0x84222325 };
/** The prime is 2^40 and this. */
const primeLow = 0x1b3;
const bytesOfKey = 8;

/** |FNV-1a| of the eight bytes of a record number: read as signed, made non-negative. In plain numbers: it is called often. */
function fnv64Words(record: number): Words {
  let { high, low } = offsetBasis;
  let rest = record;
  for (let byte = 0; byte < bytesOfKey; byte++) {
    low = (low ^ (rest % 256)) >>> 0;
    rest = Math.floor(rest / 256);
    const product = low * primeLow;
    high = (Math.imul(high, primeLow) + Math.floor(product / two32) + (low << 8)) >>> 0;
    low = product >>> 0;
  }
  if (high < 0x80000000) return { high, low };
  // The number that is as far below zero.
  return { high: (~high + (low === 0 ? 1 : 0)) >>> 0, low: -low >>> 0 };
}

export function fnv64(record: number): bigint {
  const { high, low } = fnv64Words(record);
  return (BigInt(high) << 32n) | BigInt(low);
}

/** Up to this many records a remainder can be had without a product of more than 53 bits. */
const plainRemainderRecordsMax = 2 ** 26;

/** `fnv64(record) mod records` */
export function fnv64Remainder(record: number, records: number): number {
  if (records > plainRemainderRecordsMax) return Number(fnv64(record) % BigInt(records));
  const { high, low } = fnv64Words(record);
  return ((high % records) * (two32 % records) + (low % records)) % records;
}

/** The name of a record. */
export const keyOf = (record: number): string => `user${fnv64(record)}`;

/** Chooses a record number. */
export type KeyChooser = (random: Random) => number;

export const defaultTheta = 0.99;

function zetaFrom(from: number, to: number, theta: number, start: number): number {
  let sum = start;
  for (let i = from; i <= to; i++) sum += 1 / i ** theta;
  return sum;
}

/** Ranks 0 to items - 1 by Zipf's law; `items` may grow. */
export class Zipf {
  eta = 0;
  readonly #zeta2: number;
  readonly #alpha: number;

  /** `zetan` may be given where it is known: adding up a large one takes long. */
  constructor(
    private items: number,
    private readonly theta: number = defaultTheta,
    public zetan: number = zetaFrom(1, items, theta, 0),
  ) {
    this.#zeta2 = 1 + 0.5 ** theta;
    this.#alpha = 1 / (1 - theta);
    this.#update();
  }

  /** More items than before: only the new terms are added. */
  grow(items: number): void {
    if (items <= this.items) return;
    this.zetan = zetaFrom(this.items + 1, items, this.theta, this.zetan);
    this.items = items;
    this.#update();
  }

  #update(): void {
    this.eta = (1 - (2 / this.items) ** (1 - this.theta)) / (1 - this.#zeta2 / this.zetan);
  }

  rank(unit: number): number {
    const scaled = unit * this.zetan;
    if (scaled < 1) return 0;
    if (scaled < this.#zeta2) return 1;
    return Math.floor(this.items * (this.eta * unit - this.eta + 1) ** this.#alpha);
  }
}

/** What stock YCSB scrambles: ranks of ten thousand million items, whatever the number of records. */
const scrambledItems = 10_000_000_000;
const scrambledZetan = 26.46902820178302;

/** The ranks before they are scrambled. Another theta than 0.99 has its own sum, over the records. */
export const scrambledRanks = (records: number, theta: number = defaultTheta): Zipf =>
  theta === defaultTheta ? new Zipf(scrambledItems, theta, scrambledZetan) : new Zipf(records, theta);

/** Hot records all over the key space. */
export function scrambledZipf(records: number, theta?: number): KeyChooser {
  const zipf = scrambledRanks(records, theta);
  return (random) => fnv64Remainder(zipf.rank(random.unit()), records);
}

export const uniform =
  (records: number): KeyChooser =>
  (random) =>
    Math.floor(random.unit() * records);

/** The newest records are the hottest. `lastOf`: the highest record number that was acknowledged with all below it. */
export function latest(lastOf: () => number, theta?: number): KeyChooser {
  const zipf = new Zipf(lastOf() + 1, theta);
  return (random) => {
    const last = lastOf();
    zipf.grow(last + 1);
    return Math.max(0, last - zipf.rank(random.unit()));
  };
}

/** Redraws records that are not there yet: for inserts beside a scrambled distribution. */
export const onlyAcknowledged =
  (choose: KeyChooser, lastOf: () => number): KeyChooser =>
  (random) => {
    for (;;) {
      const record = choose(random);
      if (record <= lastOf()) return record;
    }
  };

/** Record numbers that inserts take, and the highest one below which all were acknowledged. */
export class InsertCounter {
  #next: number;
  /** The highest number that was acknowledged with all below it. */
  last: number;
  acknowledgedInserts = 0;
  /** Acknowledged ahead of one that is not yet. */
  readonly #ahead = new Set<number>();

  constructor(records: number) {
    this.#next = records;
    this.last = records - 1;
  }

  take(): number {
    return this.#next++;
  }

  acknowledge(record: number): void {
    this.acknowledgedInserts++;
    this.#ahead.add(record);
    while (this.#ahead.delete(this.last + 1)) this.last++;
  }
}
