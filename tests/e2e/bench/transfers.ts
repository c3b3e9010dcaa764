// Transfers driven by the published npm client, whose own limit is one core. From this directory's parent:
//   npx vite-node bench/transfers.ts [connections] [in flight] [seconds]

import { readFileSync } from "node:fs";
import { cpuUsage, exit } from "node:process";
import { connectTransfer } from "../src/sdk";
import { Server, wasm } from "../src/server";

const [connections, inFlight, seconds] = [64, 40, 5].map((standard, nth) =>
  Number(process.argv[2 + nth] ?? standard),
);
const accounts = 100_000;
const warmupMs = 1000;

/** User and system time of a process, in microseconds; a clock tick is 10 ms on Linux. */
function cpuUs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1].split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10_000;
}

const server = await Server.start();
await server.publish("bank", wasm("transfer"));
await server.cliOk("call", "bank", "seed", `${accounts}`, "1000000000");
const clients = await Promise.all(Array.from({ length: connections }, () => connectTransfer(server, "bank")));

let measuring = false;
let running = true;
const latenciesMs: number[] = [];
const drive = async ({ connection }: (typeof clients)[0]) => {
  while (running) {
    const from = Math.floor(Math.random() * accounts);
    const started = performance.now();
    await connection.reducers.transfer({ from, to: (from + 1) % accounts, amount: 1n });
    if (measuring) latenciesMs.push(performance.now() - started);
  }
};
const loops = clients.flatMap((client) => Array.from({ length: inFlight }, () => drive(client)));
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

await pause(warmupMs);
const before = { at: performance.now(), own: cpuUsage(), server: cpuUs(server.pid) };
measuring = true;
await pause(seconds * 1000);
measuring = false;
const elapsedMs = performance.now() - before.at;
const own = cpuUsage(before.own);
const serverUs = cpuUs(server.pid) - before.server;
running = false;
await Promise.all(loops);

latenciesMs.sort((a, b) => a - b);
const count = latenciesMs.length;
const at = (part: number) => latenciesMs[Math.floor(part * count)].toFixed(2);
console.log(
  `${connections} x ${inFlight}: ${Math.round((count * 1000) / elapsedMs)} transfers/s, p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, ` +
    `server CPU ${(serverUs / count).toFixed(2)} us, client CPU ${((own.user + own.system) / count).toFixed(2)} us per transfer, ` +
    `client ${Math.round((own.user + own.system) / 10 / elapsedMs)} % of a core`,
);
for (const { connection } of clients) connection.disconnect();
await server.stop();
exit(0);
