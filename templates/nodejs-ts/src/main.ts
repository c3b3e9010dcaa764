// A small program on the command line: it keeps its identity, shows changes as they come, and takes commands.
import './websocket';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { DbConnection, tables } from './module_bindings';
import { databaseName, host } from './settings';

const TOKEN_FILE = '.token.local';

const connection = DbConnection.builder()
  .withUri(host)
  .withDatabaseName(databaseName)
  .withToken(existsSync(TOKEN_FILE) ? readFileSync(TOKEN_FILE, 'utf8').trim() : undefined)
  .onUnauthorized(() => {
    console.error('The server does not know the stored identity; there will be a new one.');
    return undefined;
  })
  .withReconnect()
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
      .onError(ctx => console.error(`The subscription failed: ${ctx.event?.message}`))
      .subscribe(tables.person);
  })
  .onReconnecting((_ctx, { error }) => console.error(`The connection is lost: ${error?.message}`))
  .onReconnect(() => console.log('Connected again'))
  .onConnectError((_ctx, error) => {
    console.error(`Cannot connect to ${host}: ${error.message}`);
    process.exitCode = 1;
  })
  .build();

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
