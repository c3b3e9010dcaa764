// Where the database is: `spacetime init` and `spacetime dev` write it to .env.local, for a build set it yourself.
export const host = import.meta.env.PUBLIC_SPACETIMEDB_HOST ?? 'http://127.0.0.1:3000';
export const databaseName = import.meta.env.PUBLIC_SPACETIMEDB_DB_NAME ?? '{{database}}';
