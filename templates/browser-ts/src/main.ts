import { DbConnection } from './module_bindings';
import { databaseName, forgetRefusedToken, host, storedToken, storeToken } from './token';

/** The wait before the first attempt to connect again; it doubles with each failure. */
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 30_000;

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

function connect(waitMs = FIRST_WAIT_MS): DbConnection {
  let isOver = false;
  // A failed connection may report its end twice.
  async function connectAgain(message: string): Promise<void> {
    if (isOver) return;
    isOver = true;
    enable(false);
    show(message, true);
    const isRefused = await forgetRefusedToken();
    setTimeout(() => (connection = connect(Math.min(waitMs * 2, LONGEST_WAIT_MS))), isRefused ? 0 : waitMs);
  }

  const next = DbConnection.builder()
    .withUri(host)
    .withDatabaseName(databaseName)
    .withToken(storedToken())
    .onConnect((connected, identity, token) => {
      waitMs = FIRST_WAIT_MS;
      storeToken(token);
      show(`Connected to ${databaseName} as ${identity.toHexString().slice(0, 8)}`);
      connected
        .subscriptionBuilder()
        .onApplied(() => {
          render();
          enable(true);
        })
        .onError(ctx => show(`The subscription failed: ${ctx.event?.message}`, true))
        .subscribe('SELECT * FROM person');
    })
    .onConnectError((_ctx, error) => connectAgain(`Cannot connect to ${host}: ${error.message}`))
    .onDisconnect(() => connectAgain('The connection was lost. Connecting again…'))
    .build();
  next.db.person.onInsert(render);
  next.db.person.onDelete(render);
  return next;
}

let connection = connect();

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
    const name = input.value;
    await connection.reducers.add({ name });
    // What was typed meanwhile stays.
    if (input.value === name) input.value = '';
  } catch (error) {
    show(error instanceof Error ? error.message : String(error), true);
  }
});
