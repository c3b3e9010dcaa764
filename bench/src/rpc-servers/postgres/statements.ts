// Statements on a pool, prepared, one by one or several in an interactive transaction.

import pg from "pg";
import { type RetryCounter, withRetries } from "./retry";

export interface Statement {
  name: string;
  text: string;
}

type Run<Row extends pg.QueryResultRow> = (
  statement: Statement,
  ...values: unknown[]
) => Promise<pg.QueryResult<Row>>;

export async function inTransaction<T>(
  pool: pg.Pool,
  body: (client: pg.PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let broken: Error | undefined;
  try {
    await client.query("BEGIN");
    const answer = await body(client);
    await client.query("COMMIT");
    return answer;
  } catch (error) {
    await client.query("ROLLBACK").catch((failure: Error) => (broken = failure));
    throw error;
  } finally {
    // A connection that cannot even roll back is thrown away.
    client.release(broken);
  }
}

const bigintType = pg.types.builtins.INT8;
/** A bigint is a number and not a text: ids and counts are small. */
export const numberTypes: pg.CustomTypesConfig = {
  getTypeParser: (type, format) =>
    type === bigintType ? Number : pg.types.getTypeParser(type, format as "text"),
};

export function postgresStatements<Row extends pg.QueryResultRow>(pool: pg.Pool) {
  const counter: RetryCounter = { retries: 0 };
  return {
    /** One statement, again where the database gave way to another: a serializable read may be refused as well. */
    read: async (statement: Statement, ...values: unknown[]): Promise<Row[]> =>
      (await withRetries(() => pool.query<Row>({ ...statement, values, types: numberTypes }), counter)).rows,
    /** Runs a function in a transaction, again where the database gave way to another. */
    write: <T>(body: (run: Run<Row>) => Promise<T>): Promise<T> =>
      withRetries(
        () =>
          inTransaction(pool, (client) =>
            body((statement, ...values) => client.query<Row>({ ...statement, values, types: numberTypes })),
          ),
        counter,
      ),
  };
}
