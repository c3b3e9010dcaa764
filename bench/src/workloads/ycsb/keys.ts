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
export interface KeyChooser {
  next(random: Random): number;
}

export const defaultTheta = 0.99;

function zetaFrom(from: number, to: number, theta: number, start: number): number {
  let sum = start;
  for (let i = from; i <= to; i++) sum += 1 / i ** theta;
  return sum;
}

/** Ranks 0 to items - 1 by Zipf's law; `items` may grow. */
export class Zipf {
  #items: number;
  #zetan: number;
  #eta = 0;
  readonly #zeta2: number;
  readonly #alpha: number;

  /** `zetan` may be given where it is known: adding up a large one takes long. */
  constructor(
    items: number,
    private readonly theta: number = defaultTheta,
    zetan?: number,
  ) {
    this.#items = items;
    this.#zetan = zetan ?? zetaFrom(1, items, theta, 0);
    this.#zeta2 = 1 + 0.5 ** theta;
    this.#alpha = 1 / (1 - theta);
    this.#update();
  }

  get zetan(): number {
    return this.#zetan;
  }

  get eta(): number {
    return this.#eta;
  }

  /** More items than before: only the new terms are added. */
  grow(items: number): void {
    if (items <= this.#items) return;
    this.#zetan = zetaFrom(this.#items + 1, items, this.theta, this.#zetan);
    this.#items = items;
    this.#update();
  }

  #update(): void {
    this.#eta = (1 - (2 / this.#items) ** (1 - this.theta)) / (1 - this.#zeta2 / this.#zetan);
  }

  rank(unit: number): number {
    const scaled = unit * this.#zetan;
    if (scaled < 1) return 0;
    if (scaled < this.#zeta2) return 1;
    return Math.floor(this.#items * (this.#eta * unit - this.#eta + 1) ** this.#alpha);
  }
}

/** What stock YCSB scrambles: ranks of ten thousand million items, whatever the number of records. */
const scrambledItems = 10_000_000_000;
const scrambledZetan = 26.46902820178302;

/** Hot records all over the key space. Another theta than 0.99 has its own sum, over the records. */
export class ScrambledZipf implements KeyChooser {
  readonly #zipf: Zipf;

  constructor(
    private readonly records: number,
    theta: number = defaultTheta,
  ) {
    this.#zipf =
      theta === defaultTheta ? new Zipf(scrambledItems, theta, scrambledZetan) : new Zipf(records, theta);
  }

  /** The rank that a draw gives: before it is scrambled. */
  rank(unit: number): number {
    return this.#zipf.rank(unit);
  }

  next(random: Random): number {
    return fnv64Remainder(this.rank(random.unit()), this.records);
  }
}

export class Uniform implements KeyChooser {
  constructor(private readonly records: number) {}

  next(random: Random): number {
    return Math.floor(random.unit() * this.records);
  }
}

/** The newest records are the hottest. */
export class Latest implements KeyChooser {
  readonly #zipf: Zipf;

  /** `last`: the highest record number whose insert was acknowledged, with all below it. */
  constructor(
    private readonly last: () => number,
    theta: number = defaultTheta,
  ) {
    this.#zipf = new Zipf(last() + 1, theta);
  }

  next(random: Random): number {
    const last = this.last();
    this.#zipf.grow(last + 1);
    return Math.max(0, last - this.#zipf.rank(random.unit()));
  }
}

/** Redraws records that are not there yet: for inserts beside a scrambled distribution. */
export class OnlyAcknowledged implements KeyChooser {
  constructor(
    private readonly chooser: KeyChooser,
    private readonly last: () => number,
  ) {}

  next(random: Random): number {
    for (;;) {
      const record = this.chooser.next(random);
      if (record <= this.last()) return record;
    }
  }
}

/** Record numbers that inserts take, and the highest one below which all were acknowledged. */
export class InsertCounter {
  #next: number;
  #last: number;
  /** Acknowledged ahead of one that is not yet. */
  readonly #ahead = new Set<number>();
  #acknowledged = 0;

  constructor(records: number) {
    this.#next = records;
    this.#last = records - 1;
  }

  /** The highest number that was acknowledged with all below it. */
  get last(): number {
    return this.#last;
  }

  /** How many inserts were acknowledged. */
  get acknowledgedInserts(): number {
    return this.#acknowledged;
  }

  take(): number {
    return this.#next++;
  }

  acknowledge(record: number): void {
    this.#acknowledged++;
    this.#ahead.add(record);
    while (this.#ahead.delete(this.#last + 1)) this.#last++;
  }
}
