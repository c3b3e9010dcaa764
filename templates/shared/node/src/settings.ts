// Where the database is: from the environment, or from the .env.local that `spacetime init` and `spacetime dev` write.
import { readFileSync } from 'node:fs';

function fromFile(): Record<string, string> {
  try {
    const lines = readFileSync('.env.local', 'utf8').split('\n');
    return Object.fromEntries(
      lines.map(line => line.split(/=(.*)/s, 2).map(part => part.trim()) as [string, string])
    );
  } catch {
    return {};
  }
}

const settings = { ...fromFile(), ...process.env };

export const host = settings.SPACETIMEDB_HOST ?? 'http://127.0.0.1:3000';
export const databaseName = settings.SPACETIMEDB_DB_NAME ?? '{{database}}';
