import { schema, SenderError, table, t } from 'lightcone/server';

// The tables of the database. Reducers, and only they, change them.
const spacetimedb = schema({
  person: table(
    { name: 'person', public: true },
    {
      id: t.u32().primaryKey().autoInc(),
      name: t.string(),
    }
  ),
});
export default spacetimedb;

// Runs once, when the database is created.
export const init = spacetimedb.init(_ctx => {});

// Runs when a client connects.
export const onConnect = spacetimedb.clientConnected(ctx => {
  console.log(`${ctx.sender.toHexString()} connected`);
});

// Runs when a client has gone.
export const onDisconnect = spacetimedb.clientDisconnected(ctx => {
  console.log(`${ctx.sender.toHexString()} disconnected`);
});

// Clients call these.
export const add = spacetimedb.reducer({ name: t.string() }, (ctx, { name }) => {
  if (name.trim() === '') throw new SenderError('A name must not be empty');
  ctx.db.person.insert({ id: 0, name }); // 0: the database counts
});

export const sayHello = spacetimedb.reducer(ctx => {
  for (const person of ctx.db.person.iter()) {
    console.info(`Hello, ${person.name}!`);
  }
  console.info('Hello, World!');
});
