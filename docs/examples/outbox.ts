// Delivers each row that comes into a table to a webhook, in order and at least once. See docs/changes.md.
//
//   LIGHTCONE_TOKEN=… node --experimental-strip-types outbox.ts http://127.0.0.1:3000 shop outbox https://example.com/hook
//
// The place up to which everything is delivered is in the file `<database>.<table>.place`. Rows that the webhook refused for good, or
// that failed too often, are in `<database>.<table>.dead`, one JSON object a line.

import { appendFile, readFile, rename, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

/** After so many failures a row is put aside. */
const ATTEMPTS_MAX = 10;
const PAUSE_MS_MAX = 60_000;
const REQUEST_MS_MAX = 30_000;

export interface Outbox {
  server: string;
  database: string;
  table: string;
  webhook: string;
  token: string;
  /** Where the files of the outbox are, with the beginning of their names. */
  files: string;
  /** The first pause after a failure, in milliseconds; each further one is twice as long. */
  pauseMs?: number;
}

/** The stream cannot go on where it was: rows may be missing, so an operator must look. */
export class PlaceGone extends Error {}

interface Change {
  table: string;
  insert?: object[];
  put?: object[];
}

/** Follows the database until `PlaceGone`, whatever else happens. */
export async function run(outbox: Outbox): Promise<never> {
  for (let failures = 0; ; failures += 1) {
    try {
      for await (const event of follow(outbox)) {
        failures = 0;
        await deliverAll(outbox, event.data);
        await savePlace(outbox, event.id);
      }
    } catch (error) {
      if (error instanceof PlaceGone) throw error;
      console.error(`${outbox.database}: ${error}`);
    }
    await sleep(pause(outbox, failures));
  }
}

function pause(outbox: Outbox, failures: number): number {
  return Math.min((outbox.pauseMs ?? 500) * 2 ** failures, PAUSE_MS_MAX);
}

interface Event {
  id: string;
  name: string;
  data: string;
}

/** The events behind the saved place, or from now on. */
async function* follow(outbox: Outbox): AsyncGenerator<Event> {
  const place = await readFile(`${outbox.files}.place`, "utf8").catch(() => undefined);
  const path = `/v1/database/${outbox.database}/changes?tables=${encodeURIComponent(outbox.table)}`;
  const headers: Record<string, string> = { authorization: `Bearer ${outbox.token}` };
  if (place !== undefined) headers["last-event-id"] = place;
  const response = await fetch(outbox.server + path, { headers });
  if (response.status === 410) throw new PlaceGone(await response.text());
  if (!response.ok || !response.body) throw new Error(await response.text());
  const parts = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (let part = await parts.read(); !part.done; part = await parts.read()) {
    const blocks = (text + part.value).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const event = parse(block);
      if (event.name !== "end") yield event;
      // The next request says whether it can go on.
      else console.error(`${outbox.database}: the server ended the stream: ${event.data}`);
    }
  }
}

function parse(block: string): Event {
  const event: Event = { id: "", name: "", data: "" };
  for (const line of block.split("\n")) {
    const [, field, value = ""] = /^(\w+): (.*)$/.exec(line) ?? [];
    if (field === "id") event.id = value;
    if (field === "event") event.name = value;
    if (field === "data") event.data = value;
  }
  return event;
}

/** The rows of an event, one after the other. Heartbeats and the first event have none. */
async function deliverAll(outbox: Outbox, data: string): Promise<void> {
  const { changes = [], offset }: { changes?: Change[]; offset?: number } = data ? JSON.parse(data) : {};
  const rows = changes.flatMap((change) => [...(change.insert ?? []), ...(change.put ?? [])]);
  for (const [index, row] of rows.entries()) {
    await deliver(outbox, JSON.stringify(row), `${outbox.database}-${offset}-${index}`);
  }
}

/** The key is the same each time, so that the receiver knows a row that it had already. */
async function deliver(outbox: Outbox, row: string, key: string): Promise<void> {
  for (let failures = 0; failures < ATTEMPTS_MAX; failures += 1) {
    const status = await post(outbox, row, key);
    if (status >= 200 && status < 300) return;
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) break;
    await sleep(pause(outbox, failures));
  }
  console.error(`${outbox.database}: ${key} was not delivered`);
  await appendFile(`${outbox.files}.dead`, `{"key":${JSON.stringify(key)},"row":${row}}\n`);
}

/** The status of the webhook; 0 if it cannot be reached in time. */
async function post(outbox: Outbox, body: string, key: string): Promise<number> {
  const headers = { "content-type": "application/json", "idempotency-key": key };
  const signal = AbortSignal.timeout(REQUEST_MS_MAX);
  const sent = fetch(outbox.webhook, { method: "POST", headers, body, signal });
  return sent.then((response) => response.status).catch(() => 0);
}

/** A crash leaves the old place or the new one. */
async function savePlace(outbox: Outbox, id: string): Promise<void> {
  const path = `${outbox.files}.place`;
  await writeFile(`${path}.tmp`, id, { flush: true });
  await rename(`${path}.tmp`, path);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const [server, database, table, webhook] = process.argv.slice(2);
  const token = process.env.LIGHTCONE_TOKEN;
  if (!server || !database || !table || !webhook || !token) {
    console.error(
      "LIGHTCONE_TOKEN=… node --experimental-strip-types outbox.ts SERVER DATABASE TABLE WEBHOOK",
    );
    process.exit(2);
  }
  await run({ server, database, table, webhook, token, files: `${database}.${table}` });
}
