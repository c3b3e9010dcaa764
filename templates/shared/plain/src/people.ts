import { builder } from './connection';
import { tables } from './module_bindings';

const find = <E extends HTMLElement>(selector: string) => document.querySelector<E>(selector)!;
const show = (role: 'status' | 'alert', text: string) => (find(`[role=${role}]`).textContent = text);
const input = find<HTMLInputElement>('input');

const connection = builder
  .withReconnect()
  .onConnect(() => show('status', 'Connected'))
  .onReconnect(() => show('status', 'Connected'))
  .onReconnecting((_ctx, { error }) => show('status', `Cannot connect: ${error?.message}`))
  .onConnectError((_ctx, error) => show('status', `Cannot connect: ${error.message}`))
  .build();
connection.db.person.onInsert(render);
connection.db.person.onDelete(render);
connection
  .subscriptionBuilder()
  .onError(ctx => show('alert', ctx.event?.message ?? ''))
  .subscribe(tables.person);

function render() {
  const items = [...connection.db.person.iter()].map(person => {
    const item = document.createElement('li');
    item.textContent = person.name;
    return item;
  });
  find('ul').replaceChildren(...items);
}

find('form').addEventListener('submit', async event => {
  event.preventDefault();
  try {
    const name = input.value;
    await connection.reducers.add({ name });
    // What was typed meanwhile stays.
    if (input.value === name) input.value = '';
    show('alert', '');
  } catch (error) {
    show('alert', (error as Error).message);
  }
});
