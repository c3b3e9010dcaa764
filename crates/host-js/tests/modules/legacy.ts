// A module of the 1.x packages (04 §10): functions have their names in calls, nothing is exported.
import { schema, table, t, SenderError, SpacetimeHostError } from 'spacetimedb-1/server';

const person = table(
  {
    name: 'person',
    public: true,
    indexes: [{ name: 'person_age', algorithm: 'btree', columns: ['age'] }],
  },
  { id: t.u64().primaryKey().autoInc(), name: t.string().unique(), age: t.u8() }
);

const spacetimedb = schema(person);

spacetimedb.reducer('add', { name: t.string(), age: t.u8() }, (ctx, { name, age }) => {
  const row = ctx.db.person.insert({ id: 0n, name, age });
  console.log(`inserted ${row.id} ${ctx.sender.toHexString().slice(-4)} ${ctx.timestamp.microsSinceUnixEpoch}`);
});

spacetimedb.reducer('look', {}, ctx => {
  const names = [...ctx.db.person.iter()].map(row => row.name).join(',');
  console.log(names, ctx.db.person.count());
  console.log([...ctx.db.person.person_age.filter(7)].map(row => row.name).join(','));
  const bob = ctx.db.person.name.find('bob');
  ctx.db.person.id.update({ ...bob!, age: 9 });
  console.log(ctx.db.person.id.find(1n)?.age, ctx.db.person.name.delete('eve'), ctx.db.person.id.find(99n));
  try {
    ctx.db.person.insert({ id: 0n, name: 'bob', age: 1 });
  } catch (e) {
    console.log(`${(e as Error).name} ${e instanceof SpacetimeHostError}`);
  }
});

spacetimedb.reducer('many', { count: t.u32() }, (ctx, { count }) => {
  for (let n = 0; n < count; n++) {
    ctx.db.person.insert({ id: 0n, name: `${n} ${'x'.repeat(1000)}`, age: 0 });
  }
  let seen = 0;
  for (const row of ctx.db.person.iter()) {
    seen += row.name.length > 1000 ? 1 : 0;
  }
  console.log(seen);
});

spacetimedb.reducer('fail', {}, () => {
  throw new SenderError('no way');
});

spacetimedb.reducer('crash', {}, () => {
  throw new RangeError('boom');
});

spacetimedb.view({ name: 'adults', public: true }, t.array(person.rowType), ctx => [
  ...ctx.db.person.person_age.filter(9),
]);

spacetimedb.procedure('double', { n: t.u32() }, t.u32(), (ctx, { n }) => {
  const count = ctx.withTx(tx => tx.db.person.count());
  console.log(`${count}`);
  return n * 2;
});
