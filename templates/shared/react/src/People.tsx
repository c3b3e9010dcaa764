import { SpacetimeDBProvider, useReducer, useSpacetimeDB, useTable } from 'lightcone/react';
import { type FormEvent, useState } from 'react';
import { builder } from './connection';
import { reducers, tables } from './module_bindings';

export function App() {
  return (
    <SpacetimeDBProvider connectionBuilder={builder}>
      <People />
    </SpacetimeDBProvider>
  );
}

function People() {
  const { isActive, connectionError } = useSpacetimeDB();
  const [people] = useTable(tables.person);
  const add = useReducer(reducers.add);
  const [name, setName] = useState('');
  const [error, setError] = useState<string>();

  async function submit(event: FormEvent) {
    event.preventDefault();
    try {
      await add({ name });
      setName('');
      setError(undefined);
    } catch (refused) {
      setError((refused as Error).message);
    }
  }

  return (
    <main>
      <h1>People</h1>
      <p role="status">{isActive ? 'Connected' : (connectionError?.message ?? 'Connecting…')}</p>
      <form onSubmit={submit}>
        <input aria-label="Name" placeholder="Name" autoComplete="off" required value={name} onChange={event => setName(event.target.value)} />
        <button>Add</button>
      </form>
      {error && <p role="alert">{error}</p>}
      <ul>
        {people.map(person => (
          <li key={person.id}>{person.name}</li>
        ))}
      </ul>
    </main>
  );
}
