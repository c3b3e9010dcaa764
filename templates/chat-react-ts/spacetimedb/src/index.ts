import { schema, table, t, SenderError } from 'lightcone/server';

const NAME_CHARACTERS_MAX = 40;
const TEXT_CHARACTERS_MAX = 2000;

const spacetimedb = schema({
  // Every user who was ever here, and how many pages each has open now.
  user: table(
    { name: 'user', public: true },
    {
      identity: t.identity().primaryKey(),
      name: t.string().optional(),
      connections: t.u32(),
    }
  ),
  message: table(
    { name: 'message', public: true },
    {
      id: t.u64().primaryKey().autoInc(),
      sender: t.identity(),
      sent: t.timestamp(),
      text: t.string(),
    }
  ),
});
export default spacetimedb;

function trimmed(what: string, text: string, charactersMax: number): string {
  const short = text.trim();
  if (short === '') throw new SenderError(`${what} must not be empty`);
  if (short.length > charactersMax) {
    throw new SenderError(`${what} must have at most ${charactersMax} characters`);
  }
  return short;
}

export const setName = spacetimedb.reducer({ name: t.string() }, (ctx, { name }) => {
  const user = ctx.db.user.identity.find(ctx.sender);
  if (!user) throw new SenderError('Connect first');
  ctx.db.user.identity.update({ ...user, name: trimmed('A name', name, NAME_CHARACTERS_MAX) });
});

export const sendMessage = spacetimedb.reducer({ text: t.string() }, (ctx, { text }) => {
  ctx.db.message.insert({
    id: 0n,
    sender: ctx.sender,
    sent: ctx.timestamp,
    text: trimmed('A message', text, TEXT_CHARACTERS_MAX),
  });
});

export const onConnect = spacetimedb.clientConnected(ctx => {
  const user = ctx.db.user.identity.find(ctx.sender);
  if (user) {
    ctx.db.user.identity.update({ ...user, connections: user.connections + 1 });
  } else {
    ctx.db.user.insert({ identity: ctx.sender, name: undefined, connections: 1 });
  }
});

export const onDisconnect = spacetimedb.clientDisconnected(ctx => {
  const user = ctx.db.user.identity.find(ctx.sender);
  if (user) {
    ctx.db.user.identity.update({ ...user, connections: Math.max(0, user.connections - 1) });
  }
});
