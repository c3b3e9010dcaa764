// The module of spec 04 §13.2, without its procedures and views.
import { schema, table, t, SenderError, Range, errors } from 'spacetimedb/server';

const person = table(
  {
    name: 'person',
    public: true,
    indexes: [{ accessor: 'name_age', algorithm: 'btree', columns: ['name', 'age'] }],
  },
  { id: t.u64().autoInc().primaryKey(), name: t.string().index('btree'), age: t.u8() },
);
const spacetimedb = schema({ person });
export default spacetimedb;

export const add = spacetimedb.reducer({ name: t.string(), age: t.u8() }, (ctx, { name, age }) => {
  console.log('inserted', ctx.db.person.insert({ id: 0n, name, age }));
});

export const crash = spacetimedb.reducer(() => {
  throw new Error('boom');
});

export const fail = spacetimedb.reducer(() => {
  throw new SenderError('no way');
});

export const init = spacetimedb.init(() => {});

export const rnd = spacetimedb.reducer((ctx) => {
  const jwt = ctx.senderAuth.jwt;
  const identity = ctx.databaseIdentity.toHexString();
  console.time('x');
  console.timeEnd('x');
  console.error('e', jwt === null, identity.length);
  console.warn('w', ctx.random() < 1, ctx.newUuidV7().toString().length);
  console.debug('d');
  console.trace('t');
});

export const scan = spacetimedb.reducer((ctx) => {
  const { person } = ctx.db;
  const rows = [...person.iter()].map((row) => row.name).sort();
  const count = person.count();
  const byName = [...person.name.filter('bob')].length;
  const range = [...person.name.filter(new Range({ tag: 'included', value: 'a' }, { tag: 'excluded', value: 'c' }))].length;
  const partial = [...person.name_age.filter('bob')].length;
  const full = [...person.name_age.filter(['bob', 7])].length;
  const open = [...person.name_age.filter(['bob', new Range({ tag: 'excluded', value: 3 }, { tag: 'unbounded' })])].length;
  console.log(rows.join(), count, byName, range, partial, full, open);
  const found = person.id.find(1n)!;
  person.id.update({ ...found, name: 'zed', age: 9 });
  console.log(person.id.find(1n)!.name, person.id.find(99n));
  console.log(person.delete({ id: 1n, name: 'zed', age: 9 }), person.id.delete(2n), person.name.delete('unknown'));
  try {
    person.insert({ id: 3n, name: 'q', age: 1 });
    person.insert({ id: 3n, name: 'r', age: 1 });
  } catch (error) {
    console.log(String(error), error instanceof errors.UniqueAlreadyExists);
  }
  for (const row of person.iter()) {
    console.log('first', row.id);
    break;
  }
  console.log(person.clear(), person.count());
});
