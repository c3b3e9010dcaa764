// The transfer of test-1 as one stored procedure: one round trip, no ORM (section 13).

import type pg from "pg";
import type { Transfer } from "../accounts";
import { type RetryCounter, withRetries } from "./retry";

const applied = 0;

/** Result: 0 applied, 1 not enough funds, 2 nothing to do. */
const createFunction = `
CREATE OR REPLACE FUNCTION transfer(amount bigint, from_id int, to_id int) RETURNS smallint
LANGUAGE plpgsql AS $$
DECLARE
  source_balance bigint;
  target_balance bigint;
  account record;
BEGIN
  IF amount <= 0 OR from_id = to_id THEN
    RETURN 2;
  END IF;
  -- Both locks in the order of the ids, so that two transfers never wait for each other.
  FOR account IN
    SELECT a.id, a.balance FROM accounts a WHERE a.id IN (from_id, to_id) ORDER BY a.id FOR UPDATE
  LOOP
    IF account.id = from_id THEN
      source_balance := account.balance;
    ELSE
      target_balance := account.balance;
    END IF;
  END LOOP;
  IF source_balance IS NULL OR target_balance IS NULL THEN
    RAISE EXCEPTION 'account_missing';
  END IF;
  IF source_balance < amount THEN
    RETURN 1;
  END IF;
  UPDATE accounts SET balance = source_balance - amount WHERE id = from_id;
  UPDATE accounts SET balance = target_balance + amount WHERE id = to_id;
  RETURN 0;
END;
$$`;

export async function createTransferFunction(pool: pg.Pool): Promise<void> {
  await pool.query("CREATE TABLE IF NOT EXISTS accounts (id integer PRIMARY KEY, balance bigint NOT NULL)");
  await pool.query(createFunction);
}

/** Whether the transfer took place. The statement is prepared once per connection and commits by itself. */
export async function transferByProcedure(
  pool: pg.Pool,
  { amount, from, to }: Transfer,
  counter: RetryCounter,
): Promise<boolean> {
  const statement = {
    name: "transfer",
    text: "SELECT transfer($1, $2, $3) AS code",
    values: [amount, from, to],
  };
  const { rows } = await withRetries(() => pool.query<{ code: number }>(statement), counter);
  return rows[0]?.code === applied;
}
