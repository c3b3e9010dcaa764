import { DbConnection } from './module_bindings';
import { databaseName, host } from './settings';

// The token is who we are: with it, the next visit is by the same user. It is kept for each server and database.
const KEY = `${host}/${databaseName}/token`;

export const builder = DbConnection.builder()
  .withUri(host)
  .withDatabaseName(databaseName)
  .withToken(({ refusedToken }) => {
    const token = localStorage.getItem(KEY);
    // A server that was set up anew does not know who we were: we come back as a new user.
    return token === refusedToken ? undefined : token;
  })
  .onConnect((_connection, _identity, token) => localStorage.setItem(KEY, token));
