// Angular reads no environment: before `ng` starts, this writes what the page needs of it to src/settings.ts.
import { existsSync, writeFileSync } from 'node:fs';

if (existsSync('.env.local')) process.loadEnvFile('.env.local');
const { SPACETIMEDB_HOST = 'http://127.0.0.1:3000', SPACETIMEDB_DB_NAME = '{{database}}' } = process.env;
const settings = { host: SPACETIMEDB_HOST, databaseName: SPACETIMEDB_DB_NAME };
writeFileSync('src/settings.ts', `export const { host, databaseName } = ${JSON.stringify(settings)};\n`);
