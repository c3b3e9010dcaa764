// Kills the server with SIGKILL under load, at random moments, many times over the same data.
//
// Every connection moves money between accounts of its own, in a known order, and waits for confirmed answers. The server
// runs the calls of a connection in order, so after a crash its accounts must show every acknowledged transfer and a prefix of
// those whose answer never came: nothing else is right, to the last unit. (A killed process leaves what it handed to the
// kernel; that nothing is acknowledged before it is synced to the disk is tested below, in the storage crates.)

import { readdirSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { RawClient } from "../src/raw-client";
import { Server, sleep, wasm } from "../src/server";
import { message, Writer } from "../src/wire";

const KILLS = Number(process.env.LIGHTCONE_CRASH_KILLS ?? 50);
const ACCOUNTS = 1000;
const CONNECTIONS = 8;
const IN_FLIGHT = 24;
const BALANCE = 1_000_000n;
const PER_CONNECTION = ACCOUNTS / CONNECTIONS;

// A seed that can be given again; the moments of the kills depend on the machine all the same.
let state = Number(process.env.LIGHTCONE_CRASH_SEED ?? Date.now() % 0xffffffff) >>> 0;
const firstSeed = state;
function random(limit: number): number {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  return Math.floor((state / 2 ** 32) * limit);
}

interface Transfer {
  from: number;
  to: number;
  amount: bigint;
}

const apply = (balances: bigint[], { from, to, amount }: Transfer): void => {
  balances[from] -= amount;
  balances[to] += amount;
};

/** One connection's load, until the connection ends. */
class Load {
  acknowledged: Transfer[] = [];
  /** Sent, in order, and not answered yet. */
  waiting: Transfer[] = [];
  #nextRequest = 0;
  #answered = 0;

  constructor(
    readonly client: RawClient,
    readonly first: number,
  ) {}

  async run(): Promise<void> {
    for (let i = 0; i < IN_FLIGHT; i++) this.#send();
    try {
      for (;;) {
        const result = await this.client.expect("ReducerResult");
        if (result.requestId !== this.#answered++) throw new Error(`answer ${result.requestId} out of order`);
        if (result.outcome.kind !== "Ok") throw new Error(`a transfer failed: ${result.outcome.error}`);
        this.acknowledged.push(this.waiting.shift()!);
        this.#send();
      }
    } catch (error) {
      if ((error as Error).message !== "the connection is closed") throw error;
    }
  }

  #send(): void {
    if (this.client.socket.readyState !== this.client.socket.OPEN) return;
    const from = this.first + random(PER_CONNECTION);
    const to = this.first + ((from - this.first + 1 + random(PER_CONNECTION - 1)) % PER_CONNECTION);
    const transfer = { from, to, amount: BigInt(1 + random(50)) };
    this.waiting.push(transfer);
    const args = new Writer().u32(from).u32(to).i64(transfer.amount).done();
    this.client.send(message.callReducer(this.#nextRequest++, "transfer", args));
  }
}

let server: Server;
beforeAll(async () => {
  // Segments and snapshots many times smaller than usual: kills hit the change of segments, the writing of snapshots, and
  // recovery from snapshot and log.
  server = await Server.start(
    "[limits]\nsnapshot-log-bytes = 200000\n[commitlog]\nmax-segment-size = 131072\n",
  );
  await server.publish("bank", wasm("transfer"));
  await server.cliOk("call", "bank", "seed", String(ACCOUNTS), String(BALANCE));
});
afterAll(() => server?.stop());

async function readBalances(): Promise<bigint[]> {
  const client = await RawClient.connect(server.url, "bank");
  const { tables } = await client.query("SELECT * FROM accounts");
  await client.close();
  const balances: bigint[] = [];
  for (const row of tables![0].rows) balances[row.readUInt32LE(0)] = row.readBigInt64LE(4);
  expect(balances.length).toBe(ACCOUNTS);
  return balances;
}

/** Takes the prefix of `unanswered` that explains what the accounts of one connection hold; it must exist. */
function explain(load: Load, before: bigint[], after: bigint[]): number {
  const balances = [...before];
  for (const transfer of load.acknowledged) apply(balances, transfer);
  const matches = (): boolean => {
    for (let id = load.first; id < load.first + PER_CONNECTION; id++)
      if (balances[id] !== after[id]) return false;
    return true;
  };
  for (let taken = 0; taken <= load.waiting.length; taken++) {
    if (taken > 0) apply(balances, load.waiting[taken - 1]);
    if (matches()) return taken;
  }
  throw new Error(
    `accounts ${load.first}...: ${load.acknowledged.length} acknowledged transfers and any first part of ` +
      `${load.waiting.length} unanswered ones do not give what is there`,
  );
}

test(
  `${KILLS} kills under load lose nothing that was acknowledged`,
  async () => {
    let balances: bigint[] = Array.from({ length: ACCOUNTS }, () => BALANCE);
    let [acknowledged, unanswered, kept] = [0, 0, 0];
    for (let kill = 0; kill < KILLS; kill++) {
      const clients = await Promise.all(
        Array.from({ length: CONNECTIONS }, () => RawClient.connect(server.url, "bank")),
      );
      const loads = clients.map((client, i) => new Load(client, i * PER_CONNECTION));
      const running = Promise.all(loads.map((load) => load.run()));
      await sleep(20 + random(500));
      await server.kill();
      await running;

      // Now and then the recovery is killed as well.
      if (kill % 7 === 3) {
        server.spawnOnly();
        await sleep(random(150));
        await server.kill();
      }
      await server.launch();
      const after = await readBalances();
      const what = `kill ${kill + 1}, LIGHTCONE_CRASH_SEED=${firstSeed}`;
      expect(
        after.reduce((sum, b) => sum + b, 0n),
        what,
      ).toBe(BigInt(ACCOUNTS) * BALANCE);
      for (const load of loads) {
        try {
          kept += explain(load, balances, after);
        } catch (error) {
          throw new Error(`${what}: ${(error as Error).message}`);
        }
        acknowledged += load.acknowledged.length;
        unanswered += load.waiting.length;
      }
      balances = after;
    }
    const files = readdirSync(server.home.path("data/replicas"), { recursive: true }).map(String);
    if (acknowledged > 50_000)
      expect(files.filter((path) => path.endsWith(".manifest")).length).toBeGreaterThan(0);
    // The first segment is gone: the log went on in others, and what snapshots hold was trimmed.
    expect(files.filter((path) => path.endsWith(".segment")).length).toBeGreaterThan(0);
    const first = files.filter((path) => path.endsWith("/00000000000000000000.segment"));
    if (acknowledged > 50_000) expect(first).toEqual([]);
    console.log(
      `${KILLS} kills: ${acknowledged} transfers acknowledged, ${unanswered} unanswered, ${kept} of these kept`,
    );
    expect(acknowledged).toBeGreaterThan(KILLS * 10);
    // Every connection of the runs before has left.
    const connected = await server.sql("bank", "SELECT * FROM st_client");
    expect(connected.length).toBeLessThanOrEqual(1);
  },
  KILLS * 6_000 + 60_000,
);

test("a polite stop keeps everything and ends with exit code 0", async () => {
  const before = await readBalances();
  expect(await server.terminate()).toBe(0);
  await server.launch();
  expect(await readBalances()).toEqual(before);
}, 30_000);
