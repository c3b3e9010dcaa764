import { DbConnection } from './module_bindings';

const host = import.meta.env.VITE_SPACETIMEDB_HOST ?? 'http://127.0.0.1:3000';
const databaseName = import.meta.env.VITE_SPACETIMEDB_DB_NAME ?? '{{database}}';
const TOKEN_KEY = `${host}/${databaseName}/token`;

const status = document.querySelector<HTMLParagraphElement>('#status')!;
const form = document.querySelector<HTMLFormElement>('#add')!;
const input = document.querySelector<HTMLInputElement>('#name')!;
const list = document.querySelector<HTMLUListElement>('#people')!;

function show(message: string, failed = false): void {
  status.textContent = message;
  status.classList.toggle('failed', failed);
}

function enable(enabled: boolean): void {
  for (const element of form.elements) (element as HTMLInputElement).disabled = !enabled;
}

const connection = DbConnection.builder()
  .withUri(host)
  .withDatabaseName(databaseName)
  .withToken(localStorage.getItem(TOKEN_KEY) ?? undefined)
  .onConnect((connection, identity, token) => {
    localStorage.setItem(TOKEN_KEY, token);
    show(`Connected to ${databaseName} as ${identity.toHexString().slice(0, 8)}`);
    connection
      .subscriptionBuilder()
      .onApplied(() => {
        render();
        enable(true);
      })
      .onError(ctx => show(`The subscription failed: ${ctx.event?.message}`, true))
      .subscribe('SELECT * FROM person');
  })
  .onConnectError((_ctx, error) => show(`Cannot connect to ${host}: ${error.message}`, true))
  .onDisconnect(() => {
    show('Disconnected. Reload the page to connect again.', true);
    enable(false);
  })
  .build();

connection.db.person.onInsert(render);
connection.db.person.onDelete(render);

function render(): void {
  const names = [...connection.db.person.iter()].map(person => person.name).sort();
  list.replaceChildren(
    ...names.map(name => {
      const item = document.createElement('li');
      item.textContent = name;
      return item;
    })
  );
}

form.addEventListener('submit', async event => {
  event.preventDefault();
  try {
    await connection.reducers.add({ name: input.value });
    input.value = '';
  } catch (error) {
    show(error instanceof Error ? error.message : String(error), true);
  }
});
