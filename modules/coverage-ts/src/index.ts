// A module that uses everything a TypeScript module can: tests call its reducers one by one. A check that fails throws a
// SenderError that says what was wanted and what came.
import { ConnectionId, Identity, TimeDuration, Timestamp, Uuid } from 'spacetimedb';
import { Range, ScheduleAt, SenderError, errors, schema, t, table } from 'spacetimedb/server';

const Point = t.object('Point', { x: t.i32(), y: t.i32() });
const Color = t.enum('Color', ['red', 'green', 'blue']);
const Shape = t.enum('Shape', { circle: t.u32(), point: Point, nothing: t.unit() });

/** One column of every type. */
const values = table(
  { name: 'every_value', public: true },
  {
    id: t.u32().primaryKey(),
    bool: t.bool(),
    i8: t.i8(),
    u8: t.u8(),
    i16: t.i16(),
    u16: t.u16(),
    i32: t.i32(),
    u32: t.u32(),
    i64: t.i64(),
    u64: t.u64(),
    i128: t.i128(),
    u128: t.u128(),
    i256: t.i256(),
    u256: t.u256(),
    f32: t.f32(),
    f64: t.f64(),
    string: t.string(),
    bytes: t.byteArray(),
    list: t.array(t.string()),
    option: t.option(t.u64()),
    point: Point,
    color: Color,
    shape: Shape,
    identity: t.identity(),
    connection: t.connectionId(),
    time: t.timestamp(),
    duration: t.timeDuration(),
    uuid: t.uuid(),
    when: t.scheduleAt(),
  },
);

/** Indexes of every kind. */
const indexed = table(
  {
    name: 'indexed',
    public: true,
    indexes: [
      { accessor: 'group_rank', algorithm: 'btree', columns: ['group', 'rank'] },
      { accessor: 'by_word', algorithm: 'hash', columns: ['word'] },
      { accessor: 'by_small', algorithm: 'direct', column: 'small' },
    ],
  },
  {
    id: t.u64().autoInc().primaryKey(),
    group: t.string(),
    rank: t.i32(),
    word: t.string(),
    small: t.u8(),
    code: t.string().unique(),
  },
);

const counters = table(
  { name: 'counters', public: true },
  { key: t.u8().autoInc().primaryKey(), wide: t.i128().autoInc(), note: t.string() },
);

/** What the lifecycle reducers saw. */
const events = table({ name: 'events', public: true }, { id: t.u64().autoInc().primaryKey(), text: t.string() });

const spacetimedb = schema({ values, indexed, counters, events });
export default spacetimedb;

const show = (value: unknown): string =>
  JSON.stringify(value, (key, part: unknown) => {
    if (typeof part === 'bigint') return `${part}n`;
    if (part instanceof Uint8Array) return [...part];
    // A variant without content may or may not have an empty one.
    if (key === 'value' && typeof part === 'object' && part !== null && Object.keys(part).length === 0) return undefined;
    return part;
  });

function expectEqual(what: string, got: unknown, want: unknown): void {
  if (show(got) !== show(want)) {
    throw new SenderError(`${what}: got ${show(got)}, want ${show(want)}`);
  }
}

export const init = spacetimedb.init((ctx) => {
  ctx.db.events.insert({ id: 0n, text: 'init' });
});

export const connected = spacetimedb.clientConnected((ctx) => {
  ctx.db.events.insert({ id: 0n, text: `connected ${ctx.connectionId !== null}` });
});

export const disconnected = spacetimedb.clientDisconnected((ctx) => {
  ctx.db.events.insert({ id: 0n, text: 'disconnected' });
});

/** Every column type goes in and comes out, at its limits. */
export const storeValues = spacetimedb.reducer((ctx) => {
  const power = (bits: bigint) => 1n << bits;
  const row = (id: number, low: boolean) => ({
    id,
    bool: low,
    i8: low ? -128 : 127,
    u8: low ? 0 : 255,
    i16: low ? -32768 : 32767,
    u16: low ? 0 : 65535,
    i32: low ? -2147483648 : 2147483647,
    u32: low ? 0 : 4294967295,
    i64: low ? -power(63n) : power(63n) - 1n,
    u64: low ? 0n : power(64n) - 1n,
    i128: low ? -power(127n) : power(127n) - 1n,
    u128: low ? 0n : power(128n) - 1n,
    i256: low ? -power(255n) : power(255n) - 1n,
    u256: low ? 0n : power(256n) - 1n,
    f32: low ? -1.5 : 0.25,
    f64: low ? Number.MIN_VALUE : Number.MAX_VALUE,
    string: low ? '' : 'é\u{1F600}\u0000',
    bytes: low ? new Uint8Array() : new Uint8Array([0, 255]),
    list: low ? [] : ['a', '', 'b'],
    option: low ? undefined : 7n,
    point: { x: -1, y: 2 },
    color: low ? { tag: 'red' as const } : { tag: 'blue' as const },
    shape: low ? { tag: 'nothing' as const } : { tag: 'point' as const, value: { x: 3, y: 4 } },
    identity: ctx.sender,
    connection: new ConnectionId(low ? 0n : 5n),
    time: new Timestamp(low ? -1n : 1_700_000_000_000_000n),
    duration: new TimeDuration(low ? -5n : 5n),
    uuid: Uuid.parse('01020304-0506-4708-890a-0b0c0d0e0f10'),
    when: low ? ScheduleAt.interval(5n) : ScheduleAt.time(9n),
  });
  for (const low of [true, false]) {
    const want = row(low ? 1 : 2, low);
    ctx.db.values.insert(want);
    expectEqual('a row', ctx.db.values.id.find(want.id), want);
  }
  expectEqual('rows', ctx.db.values.count(), 2n);
  expectEqual('deleted', ctx.db.values.delete(row(1, true)), true);
  expectEqual('deleted again', ctx.db.values.delete(row(1, true)), false);
  expectEqual('cleared', ctx.db.values.clear(), 1n);
  expectEqual('an identity', Identity.fromString(ctx.sender.toHexString()).isEqual(ctx.sender), true);
});

const word = (n: number) => ['ant', 'bee', 'cat', 'dog'][n % 4]!;

/** Points, prefixes, ranges, on every kind of index. */
export const indexes = spacetimedb.reducer((ctx) => {
  const { indexed } = ctx.db;
  for (let n = 0; n < 40; n++) {
    const group = `g${n % 3}`;
    indexed.insert({ id: 0n, group, rank: n - 20, word: word(n), small: n, code: `c${n}` });
  }
  const ranks = (rows: Iterable<{ rank: number }>) => [...rows].map((row) => row.rank).sort((a, b) => a - b);
  expectEqual('a prefix', ranks(indexed.group_rank.filter('g1')).length, 13);
  expectEqual('a full key', ranks(indexed.group_rank.filter(['g1', -19])), [-19]);
  const between = new Range<number>({ tag: 'included', value: -5 }, { tag: 'excluded', value: 4 });
  expectEqual('a range behind a prefix', ranks(indexed.group_rank.filter(['g0', between])), [-5, -2, 1]);
  const above = new Range<number>({ tag: 'excluded', value: 16 }, { tag: 'unbounded' });
  expectEqual('an open range', ranks(indexed.group_rank.filter(['g0', above])), [19]);
  const groups = new Range<string>({ tag: 'unbounded' }, { tag: 'excluded', value: 'g1' });
  expectEqual('a range of the first column', ranks(indexed.group_rank.filter(groups)).length, 14);
  expectEqual('a hash index', ranks(indexed.by_word.filter('cat')).length, 10);
  expectEqual('a direct index', ranks(indexed.by_small.filter(7)), [-13]);
  expectEqual('a unique column', indexed.code.find('c9')?.rank, -11);
  expectEqual('nothing', indexed.code.find('none'), null);
  const row = indexed.code.find('c9')!;
  indexed.id.update({ ...row, word: 'emu' });
  expectEqual('an update', indexed.code.find('c9')?.word, 'emu');
  expectEqual('a unique delete', indexed.code.delete('c9'), true);
  expectEqual('a hash delete', indexed.by_word.delete('dog'), 10);
  expectEqual('a range delete', indexed.group_rank.delete(['g2', between]), 2);
  expectEqual('what is left', indexed.count(), 40n - 1n - 10n - 2n);
});

/** Iterators: whole, abandoned, nested, larger than a buffer, and beside writes. */
export const iterators = spacetimedb.reducer((ctx) => {
  const { indexed } = ctx.db;
  indexed.clear();
  const long = 'x'.repeat(1000);
  for (let n = 0; n < 200; n++) {
    indexed.insert({ id: 0n, group: long, rank: n, word: long, small: n, code: `long${n}` });
  }
  let sum = 0;
  for (const row of indexed.iter()) sum += row.rank;
  expectEqual('a sum over several buffers', sum, 19900);
  for (const row of indexed) {
    if (row.rank >= 0) break;
  }
  let pairs = 0;
  for (const _ of indexed.iter()) {
    for (const _ of indexed.by_small.filter(3)) pairs++;
  }
  expectEqual('nested', pairs, 200);
  for (const row of indexed.iter()) indexed.id.delete(row.id);
  expectEqual('deleted while it was read', indexed.count(), 0n);
  const huge = 'y'.repeat(200_000);
  indexed.insert({ id: 0n, group: huge, rank: 0, word: '', small: 0, code: 'huge' });
  expectEqual('a row larger than the buffer', [...indexed.iter()][0]!.group.length, 200_000);
});

export const sequences = spacetimedb.reducer((ctx) => {
  const { counters } = ctx.db;
  const first = counters.insert({ key: 0, wide: 0n, note: 'a' });
  const second = counters.insert({ key: 0, wide: 0n, note: 'b' });
  expectEqual('counted on', [second.key - first.key, second.wide - first.wide], [1, 1n]);
  expectEqual('given', counters.insert({ key: 200, wide: 5n, note: 'c' }), { key: 200, wide: 5n, note: 'c' });
});

/** Errors of the host are exceptions of their classes, and the transaction goes on. */
export const hostErrors = spacetimedb.reducer((ctx) => {
  const { indexed, events } = ctx.db;
  const row = { id: 7n, group: 'g', rank: 0, word: 'w', small: 0, code: 'same' };
  indexed.insert(row);
  const attempt = (what: string, action: () => unknown, wanted: new (...args: never[]) => Error) => {
    try {
      action();
    } catch (error) {
      if (error instanceof wanted) return;
      throw new SenderError(`${what}: ${String(error)}`);
    }
    throw new SenderError(`${what}: nothing was thrown`);
  };
  attempt('unique', () => indexed.insert({ ...row, id: 8n }), errors.UniqueAlreadyExists);
  attempt('no such row', () => indexed.id.update({ ...row, id: 99n, code: 'other' }), errors.NoSuchRow);
  expectEqual('an identical row', indexed.insert(row).id, 7n);
  events.insert({ id: 0n, text: 'after errors' });
});

export const context = spacetimedb.reducer((ctx) => {
  const numbers = [ctx.random(), ctx.random(), ctx.random()];
  expectEqual('random numbers', numbers.every((number) => number >= 0 && number < 1), true);
  expectEqual('different ones', new Set(numbers).size, 3);
  expectEqual('an integer', ctx.random.integerInRange(3, 3), 3);
  const ids = [ctx.newUuidV7(), ctx.newUuidV7(), ctx.newUuidV4()].map(String);
  expectEqual('different ids', new Set(ids).size, 3);
  expectEqual('ordered ids', ids[0]! < ids[1]!, true);
  expectEqual('a database', ctx.databaseIdentity.toHexString().length, 64);
  const { jwt, isInternal } = ctx.senderAuth;
  console.log('auth', isInternal, jwt === null ? 'none' : jwt.subject);
  console.log('sender', ctx.sender.toHexString(), ctx.timestamp.microsSinceUnixEpoch > 0n);
});

export const logging = spacetimedb.reducer(() => {
  console.error('error', { a: 1n, b: [1, 'two'] });
  console.warn('warn %s', 'plain');
  console.info('info');
  console.debug('debug');
  console.trace('trace');
  console.assert(true, 'not shown');
  console.assert(false, 'shown');
  console.time('span');
  console.timeEnd('span');
  console.timeEnd('never started');
});

export const userError = spacetimedb.reducer({ text: t.string() }, (ctx, { text }) => {
  ctx.db.events.insert({ id: 0n, text: 'not kept' });
  throw new SenderError(text);
});

export const crash = spacetimedb.reducer((ctx) => {
  ctx.db.events.insert({ id: 0n, text: 'not kept' });
  (undefined as unknown as { x: () => void }).x();
});

export const loopForever = spacetimedb.reducer(() => {
  for (;;);
});

export const recurseForever = spacetimedb.reducer(() => {
  const deeper = (): number => deeper() + 1;
  deeper();
});

export const allocateForever = spacetimedb.reducer(() => {
  const kept: object[] = [];
  for (;;) kept.push({ n: kept.length });
});

/** The same after everything that can go wrong. */
export const stillWorks = spacetimedb.reducer((ctx) => {
  expectEqual('no row of a failed call', [...ctx.db.events.iter()].filter((event) => event.text === 'not kept'), []);
});
