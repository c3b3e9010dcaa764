import { useReducer, useSpacetimeDB, useSpacetimeDBQuery } from 'lightcone/tanstack';
import { useMutation } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { reducers, tables } from './module_bindings';

export function People() {
  const { isActive, connectionError } = useSpacetimeDB();
  const [people] = useSpacetimeDBQuery(tables.person);
  const [name, setName] = useState('');
  const add = useMutation({ mutationFn: useReducer(reducers.add), onSuccess: () => setName('') });

  function submit(event: FormEvent) {
    event.preventDefault();
    add.mutate({ name });
  }

  return (
    <main>
      <h1>People</h1>
      <p role="status">{isActive ? 'Connected' : (connectionError?.message ?? 'Connecting…')}</p>
      <form onSubmit={submit}>
        <input aria-label="Name" placeholder="Name" autoComplete="off" required value={name} onChange={event => setName(event.target.value)} />
        <button>Add</button>
      </form>
      {add.error && <p role="alert">{add.error.message}</p>}
      <ul>
        {people.map(person => (
          <li key={person.id}>{person.name}</li>
        ))}
      </ul>
    </main>
  );
}
