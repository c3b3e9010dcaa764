import { type FormEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useReducer, useSpacetimeDB, useTable } from 'lightcone/react';
import { reducers, tables } from './module_bindings';
import type { User } from './module_bindings/types';

/** What a user is called: the name, or the beginning of the identity. */
const nameOf = (user: User | undefined, identity: string): string => user?.name ?? identity.slice(0, 8);

export function Chat() {
  const { isActive, identity, connectionError } = useSpacetimeDB();
  const [users, usersReady] = useTable(tables.user);
  const [messages] = useTable(tables.message);
  const me = useLast(identity?.toHexString());
  // Once the chat is there it stays, also without a connection: what is being typed must not get lost.
  const isShown = useOnce(isActive && usersReady);

  const byIdentity = useMemo(
    () => new Map(users.map(user => [user.identity.toHexString(), user])),
    [users]
  );

  if (!isShown || !me) {
    const problem = connectionError ? `Cannot connect: ${connectionError.message}` : 'Connecting…';
    return (
      <p className="notice" role="status">
        {isActive ? 'Loading…' : problem}
      </p>
    );
  }
  return (
    <div className="chat">
      <aside>
        {!isActive && <p role="status">Connection lost. Trying to get it back…</p>}
        <NameForm name={nameOf(byIdentity.get(me), me)} />
        <People users={users} me={me} />
      </aside>
      <main>
        <Messages messages={messages} byIdentity={byIdentity} me={me} />
        <MessageForm canSend={isActive} />
      </main>
    </div>
  );
}

/** The last value that there was. */
function useLast<T>(value: T | undefined): T | undefined {
  const [last, setLast] = useState(value);
  if (value !== undefined && value !== last) setLast(value);
  return value ?? last;
}

/** Whether the condition has been true. */
function useOnce(condition: boolean): boolean {
  return useLast(condition || undefined) ?? false;
}

function NameForm({ name }: { name: string }) {
  const setName = useReducer(reducers.setName);
  const [draft, setDraft] = useState<string>();
  const [error, setError] = useState<string>();

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (draft === undefined) return;
    const problem = await outcome(setName({ name: draft }));
    setError(problem);
    // Unless it was changed meanwhile.
    if (!problem) setDraft(current => (current === draft ? undefined : current));
  }

  return (
    <form className="name" onSubmit={submit}>
      <label>
        Your name
        <input aria-label="Your name" value={draft ?? name} onChange={event => setDraft(event.target.value)} />
      </label>
      <button disabled={draft === undefined}>Save</button>
      {error && <p role="alert">{error}</p>}
    </form>
  );
}

function People({ users, me }: { users: readonly User[]; me: string }) {
  const sorted = users
    .map(user => ({ user, hex: user.identity.toHexString() }))
    .sort(
      (a, b) =>
        Number(b.user.connections > 0) - Number(a.user.connections > 0) ||
        nameOf(a.user, a.hex).localeCompare(nameOf(b.user, b.hex))
    );
  return (
    <ul className="people" aria-label="People">
      {sorted.map(({ user, hex }) => (
        <li key={hex} className={user.connections > 0 ? 'online' : 'offline'}>
          {nameOf(user, hex)}
          {hex === me && ' (you)'}
        </li>
      ))}
    </ul>
  );
}

interface MessageRow {
  id: bigint;
  sender: { toHexString(): string };
  sent: { toDate(): Date };
  text: string;
}

function Messages({
  messages,
  byIdentity,
  me,
}: {
  messages: readonly MessageRow[];
  byIdentity: Map<string, User>;
  me: string;
}) {
  const end = useRef<HTMLLIElement>(null);
  const sorted = useMemo(
    () => [...messages].sort((a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)),
    [messages]
  );
  useEffect(() => {
    end.current?.scrollIntoView({ block: 'end' });
  }, [sorted.length]);

  return (
    <ol className="messages" aria-label="Messages">
      {sorted.length === 0 && <li className="empty">No messages yet.</li>}
      {sorted.map(message => {
        const sender = message.sender.toHexString();
        return (
          <li key={message.id.toString()} className={sender === me ? 'mine' : 'theirs'}>
            <header>
              <b>{nameOf(byIdentity.get(sender), sender)}</b>{' '}
              <time>{message.sent.toDate().toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}</time>
            </header>
            <p>{message.text}</p>
          </li>
        );
      })}
      <li ref={end} aria-hidden className="end" />
    </ol>
  );
}

function MessageForm({ canSend }: { canSend: boolean }) {
  const sendMessage = useReducer(reducers.sendMessage);
  const [text, setText] = useState('');
  const [error, setError] = useState<string>();

  async function submit(event: FormEvent) {
    event.preventDefault();
    if (!canSend) return;
    const sent = text;
    setText('');
    const problem = await outcome(sendMessage({ text: sent }));
    setError(problem);
    // What was typed meanwhile stays.
    if (problem) setText(current => (current === '' ? sent : `${sent} ${current}`));
  }

  return (
    <form className="send" onSubmit={submit}>
      {error && <p role="alert">{error}</p>}
      <input
        aria-label="Message"
        placeholder="Say something"
        autoComplete="off"
        value={text}
        onChange={event => setText(event.target.value)}
      />
      <button disabled={!canSend || text.trim() === ''}>Send</button>
    </form>
  );
}

/** What went wrong with a call, if anything did. */
async function outcome(call: Promise<void>): Promise<string | undefined> {
  try {
    await call;
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}
