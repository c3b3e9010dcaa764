// A small program on the command line: it keeps its identity, shows changes as they come, and takes commands.
import './websocket';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DbConnection } from './module_bindings';
import { databaseName, host } from './settings';

const TOKEN_FILE = '.token.local';
const token = existsSync(TOKEN_FILE) ? readFileSync(TOKEN_FILE, 'utf8').trim() : undefined;

const connection = DbConnection.builder()
  .withUri(host)
  .withDatabaseName(databaseName)
  .withToken(token)
  .onConnect((connection, identity, token) => {
    // The token is who we are: a program that has it may act for us.
    writeFileSync(TOKEN_FILE, token, { mode: 0o600 });
    console.log(`Connected to ${databaseName} as ${identity.toHexString()}`);
    connection
      .subscriptionBuilder()
      .onApplied(() => {
        connection.db.person.onInsert((_ctx, person) => console.log(`+ ${person.name}`));
        connection.db.person.onDelete((_ctx, person) => console.log(`- ${person.name}`));
        console.log('Commands: add <name>, list, hello, quit');
        readCommands();
      })
      .onError(ctx => stop(`The subscription failed: ${ctx.event?.message}`))
      .subscribe('SELECT * FROM person');
  })
  .onConnectError(async (_ctx, error) => {
    const isRefused = token !== undefined && (await refuses(token));
    if (isRefused) rmSync(TOKEN_FILE, { force: true });
    const advice = isRefused ? '\nThe stored identity is of no use any more and was removed; start again as a new one.' : '';
    stop(`Cannot connect to ${host}: ${error.message}${advice}`);
  })
  .onDisconnect((_ctx, error) => {
    if (error) stop(`Disconnected: ${error.message}`);
  })
  .build();

/** Whether the server refuses a token, rather than being away for a while. */
async function refuses(token: string): Promise<boolean> {
  const url = new URL('v1/identity/websocket-token', `${host.replace(/^ws/, 'http').replace(/\/$/, '')}/`);
  const answer = await fetch(url, { method: 'POST', headers: { Authorization: `Bearer ${token}` } }).catch(() => undefined);
  // 400: it is no token at all.
  return answer?.status === 400 || answer?.status === 401;
}

function stop(message: string): void {
  console.error(message);
  process.exit(1);
}

async function readCommands(): Promise<void> {
  for await (const line of createInterface({ input: process.stdin })) {
    const [command, ...words] = line.trim().split(/\s+/);
    try {
      switch (command) {
        case 'add':
          await connection.reducers.add({ name: words.join(' ') });
          break;
        case 'list':
          for (const person of connection.db.person.iter()) console.log(`  ${person.name}`);
          break;
        case 'hello':
          await connection.reducers.sayHello({});
          break;
        case 'quit':
          connection.disconnect();
          process.exit(0);
        case '':
          break;
        default:
          console.log(`Unknown command: ${command}`);
      }
    } catch (error) {
      console.error(error instanceof Error ? error.message : error);
    }
  }
  connection.disconnect();
}
