import { useReducer, useSpacetimeDB, useTable } from 'lightcone/solid';
import { createSignal, For, Show } from 'solid-js';
import { reducers, tables } from './module_bindings';

export function People() {
  const connection = useSpacetimeDB();
  const [people] = useTable(() => tables.person);
  const add = useReducer(reducers.add);
  const [name, setName] = createSignal('');
  const [error, setError] = createSignal<string>();

  async function submit(event: SubmitEvent) {
    event.preventDefault();
    try {
      await add({ name: name() });
      setName('');
      setError(undefined);
    } catch (refused) {
      setError((refused as Error).message);
    }
  }

  return (
    <main>
      <h1>People</h1>
      <p role="status">{connection.isActive ? 'Connected' : (connection.connectionError?.message ?? 'Connecting…')}</p>
      <form onSubmit={submit}>
        <input aria-label="Name" placeholder="Name" autocomplete="off" required value={name()} onInput={event => setName(event.target.value)} />
        <button>Add</button>
      </form>
      <Show when={error()}>
        <p role="alert">{error()}</p>
      </Show>
      <ul>
        <For each={people}>{person => <li>{person.name}</li>}</For>
      </ul>
    </main>
  );
}
