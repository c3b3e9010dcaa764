// What the REST layer of Supabase's local stack has besides the table (section 10.5).

import type pg from "pg";
import { messageOf } from "../../init/addresses";
import { sleep } from "../../init/processes";
import { NotRunning } from "../connector";

const gatewayMillisecondsMax = 20_000;
const functionsMillisecondsMax = 10_000;
const pauseMilliseconds = 500;
const requestMillisecondsMax = 2_000;

/** What clients of the stack's REST layer would call; the benchmark itself uses neither. */
const createFunctions = `
CREATE TABLE IF NOT EXISTS public.accounts (id bigint PRIMARY KEY, balance bigint NOT NULL);
CREATE OR REPLACE FUNCTION public.seed_accounts(count int, initial_balance bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  TRUNCATE public.accounts;
  INSERT INTO public.accounts (id, balance) SELECT id, initial_balance FROM generate_series(0, count - 1) AS ids (id);
END;
$$;
CREATE OR REPLACE FUNCTION public.transfer(amount bigint, from_id bigint, to_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  IF amount <= 0 OR from_id = to_id THEN
    RETURN;
  END IF;
  PERFORM 1 FROM public.accounts WHERE id IN (from_id, to_id) ORDER BY id FOR UPDATE;
  UPDATE public.accounts SET balance = balance - amount WHERE id = from_id AND balance >= amount;
  IF FOUND THEN
    UPDATE public.accounts SET balance = balance + amount WHERE id = to_id;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'account_missing';
    END IF;
  END IF;
END;
$$;
NOTIFY pgrst, 'reload schema';
`;

/** Waits until the gateway answers a request as wanted; `what` is what the error names. */
async function waitFor(what: string, limit: number, ask: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + limit;
  let last = "no answer";
  while (Date.now() < deadline) {
    try {
      if (await ask()) return;
      last = "it answers, but does not know it";
    } catch (error) {
      last = messageOf(error);
    }
    await sleep(pauseMilliseconds);
  }
  throw new NotRunning(`${what} was not there after ${limit / 1000} s: ${last}`);
}

const ask = (url: string, init: RequestInit = {}) => {
  const key = process.env["SUPABASE_ANON_KEY"] ?? "";
  const headers = { apikey: key, authorization: `Bearer ${key}`, "content-type": "application/json" };
  return fetch(url, { ...init, headers, signal: AbortSignal.timeout(requestMillisecondsMax) });
};

export async function makeSupabaseFunctions(pool: pg.Pool): Promise<void> {
  const gateway = process.env["SUPABASE_URL"]?.replace(/\/+$/, "");
  if (gateway) {
    await waitFor(`the gateway of Supabase at ${gateway}`, gatewayMillisecondsMax, async () => {
      await ask(`${gateway}/rest/v1/`);
      return true;
    });
  }
  await pool.query(createFunctions);
  if (!gateway) return;
  await waitFor(`the function transfer at ${gateway}`, functionsMillisecondsMax, async () => {
    // A transfer of nothing: it is answered as soon as the function is known.
    const body = JSON.stringify({ amount: 0, from_id: 0, to_id: 1 });
    return (await ask(`${gateway}/rest/v1/rpc/transfer`, { method: "POST", body })).status !== 404;
  });
}
