// The token is who we are: with it, the next visit is by the same user. It is kept for each server and database.

export const host = import.meta.env.VITE_SPACETIMEDB_HOST ?? 'http://127.0.0.1:3000';
export const databaseName = import.meta.env.VITE_SPACETIMEDB_DB_NAME ?? '{{database}}';

const KEY = `${host}/${databaseName}/token`;

export const storedToken = (): string | undefined => localStorage.getItem(KEY) ?? undefined;
export const storeToken = (token: string): void => localStorage.setItem(KEY, token);

/** Forgets the token if the server refuses it, rather than being away for a while. Returns whether it did. */
export async function forgetRefusedToken(): Promise<boolean> {
  const token = storedToken();
  if (token === undefined) return false;
  const url = new URL('v1/identity/websocket-token', `${host.replace(/^ws/, 'http').replace(/\/$/, '')}/`);
  const answer = await fetch(url, { method: 'POST', headers: { Authorization: `Bearer ${token}` } }).catch(() => undefined);
  // 400: it is no token at all.
  if (answer?.status !== 400 && answer?.status !== 401) return false;
  localStorage.removeItem(KEY);
  return true;
}
