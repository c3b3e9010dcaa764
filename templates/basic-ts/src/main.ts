import './websocket';
import { DbConnection } from './module_bindings';
import { databaseName, host } from './settings';

const name = process.argv[2] ?? 'Ada';

DbConnection.builder()
  .withUri(host)
  .withDatabaseName(databaseName)
  .onConnect((connection, identity) => {
    console.log(`Connected to ${databaseName} as ${identity.toHexString()}`);

    connection.db.person.onInsert((_ctx, person) => console.log(`Person: ${person.name}`));

    connection
      .subscriptionBuilder()
      .onApplied(async () => {
        console.log(`There are ${connection.db.person.count()} people; adding ${name}`);
        await connection.reducers.add({ name });
        await connection.reducers.sayHello({});
        console.log('Press Ctrl-C to stop. Run this again elsewhere to see more people come.');
      })
      .onError(ctx => console.error('The subscription failed:', ctx.event))
      .subscribe('SELECT * FROM person');
  })
  .onConnectError((_ctx, error) => {
    console.error(`Cannot connect to ${host}: ${error.message}`);
    process.exitCode = 1;
  })
  .onDisconnect(() => console.log('Disconnected'))
  .build();
