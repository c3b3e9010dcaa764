import { ScheduleAt } from 'lightcone';
import { type InferSchema, type ReducerCtx, schema, SenderError, table, t } from 'lightcone/server';

const WORLD = 1000;
const FOOD = 120;
const FOOD_MASS = 2;
const START_MASS = 20;
const UNITS_PER_SECOND = 160;
const TICK_MS = 50;
const NAME_CHARACTERS_MAX = 20;

// A row of it has the database call `step`, again and again, as long as there are players.
const tick = table(
  { name: 'tick' },
  { scheduledId: t.u64().primaryKey().autoInc(), scheduledAt: t.scheduleAt() }
);

const spacetimedb = schema({
  tick,
  // Those who play now: circles that go where their direction says.
  player: table(
    { name: 'player', public: true },
    {
      identity: t.identity().primaryKey(),
      name: t.string(),
      x: t.f32(),
      y: t.f32(),
      mass: t.f32(),
      dx: t.f32(),
      dy: t.f32(),
    }
  ),
  food: table(
    { name: 'food', public: true },
    { id: t.u32().primaryKey().autoInc(), x: t.f32(), y: t.f32() }
  ),
});
export default spacetimedb;

type Ctx = ReducerCtx<InferSchema<typeof spacetimedb>>;
type Place = { x: number; y: number };

const radius = (mass: number) => 3 * Math.sqrt(mass);
const inside = (at: number) => Math.min(WORLD, Math.max(0, at));
const distance = (a: Place, b: Place) => Math.hypot(a.x - b.x, a.y - b.y);
const somewhere = (ctx: Ctx) => ({ x: ctx.random() * WORLD, y: ctx.random() * WORLD });

export const join = spacetimedb.reducer({ name: t.string() }, (ctx, { name }) => {
  const short = name.trim();
  if (short === '') throw new SenderError('A name must not be empty');
  if (short.length > NAME_CHARACTERS_MAX) throw new SenderError('This name is too long');
  if (ctx.db.player.identity.find(ctx.sender)) throw new SenderError('You play already');
  const start = { mass: START_MASS, dx: 0, dy: 0, ...somewhere(ctx) };
  ctx.db.player.insert({ identity: ctx.sender, name: short, ...start });
  if (ctx.db.tick.count() > 0n) return;
  ctx.db.tick.insert({ scheduledId: 0n, scheduledAt: ScheduleAt.interval(BigInt(TICK_MS) * 1000n) });
});

// Where to: of a longer vector, the first unit counts. A client says no more than this, so none is faster than others.
export const steer = spacetimedb.reducer({ dx: t.f32(), dy: t.f32() }, (ctx, { dx, dy }) => {
  const length = Math.max(1, Math.hypot(dx, dy));
  if (!Number.isFinite(length)) throw new SenderError('That is no direction');
  const player = ctx.db.player.identity.find(ctx.sender);
  // Eaten a moment ago.
  if (!player) return;
  ctx.db.player.identity.update({ ...player, dx: dx / length, dy: dy / length });
});

// The database alone calls it.
export const step = spacetimedb.reducer({ onSchedule: tick }, { due: tick.rowType }, ctx => {
  const food = [...ctx.db.food.iter()];
  const eaten = new Set<unknown>();
  // The largest first: who is eaten eats no one.
  const players = [...ctx.db.player.iter()].sort((a, b) => b.mass - a.mass);
  for (const player of players) {
    if (eaten.has(player)) continue;
    const way = (UNITS_PER_SECOND * TICK_MS) / 1000 / Math.sqrt(player.mass / START_MASS);
    const here = { x: inside(player.x + player.dx * way), y: inside(player.y + player.dy * way) };
    const reach = radius(player.mass);
    let mass = player.mass;
    for (const one of food) {
      if (eaten.has(one) || distance(here, one) > reach) continue;
      eaten.add(one);
      ctx.db.food.id.delete(one.id);
      mass += FOOD_MASS;
    }
    for (const other of players) {
      if (eaten.has(other) || mass < other.mass * 1.2 || distance(here, other) > reach) continue;
      eaten.add(other);
      ctx.db.player.identity.delete(other.identity);
      mass += other.mass;
    }
    // A row that stays as it is is no change, and sent to no one.
    ctx.db.player.identity.update({ ...player, ...here, mass });
  }
  while (ctx.db.food.count() < BigInt(FOOD)) ctx.db.food.insert({ id: 0, ...somewhere(ctx) });
});

export const onDisconnect = spacetimedb.clientDisconnected(ctx => {
  ctx.db.player.identity.delete(ctx.sender);
  // An empty world costs nothing.
  if (ctx.db.player.count() === 0n) for (const row of ctx.db.tick.iter()) ctx.db.tick.delete(row);
});
