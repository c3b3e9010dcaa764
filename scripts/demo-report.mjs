// Checks the sum of the balances and prints the demo's table: node demo-report.mjs <directory> <accounts> <balance>

import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [directory, accounts, balance] = process.argv.slice(2);
const text = name => readFileSync(join(directory, name), 'utf8');
const load = JSON.parse(text('load.json'));
const before = JSON.parse(text('before.json'));
const after = JSON.parse(text('after.json'));

// Balances are 64-bit numbers: take their digits, not what JSON.parse makes of them.
const rows = [...text('rows.json').matchAll(/\[(\d+),\s*(-?\d+)\]/g)];
const sum = rows.reduce((total, row) => total + BigInt(row[2]), 0n);
const expected = BigInt(accounts) * BigInt(balance);
const sumIsRight = sum === expected && rows.length === Number(accounts);

const transactions = after.transactions - before.transactions;
const seconds = (after.at - before.at) / 1000;
const number = (value, digits = 0) =>
  value.toLocaleString('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });
const table = [
  ['transfers per second', number(load.transfers_per_second)],
  ['latency p50', `${number(load.latency_ms.p50, 2)} ms`],
  ['latency p95', `${number(load.latency_ms.p95, 2)} ms`],
  ['latency p99', `${number(load.latency_ms.p99, 2)} ms`],
  ['server CPU per transfer', load.server ? `${number(load.server.cpu_us_per_transfer, 2)} µs` : 'not measured'],
  ['log bytes per transfer', number((after.logBytes - before.logBytes) / transactions, 1)],
  ['log syncs per second', number((after.syncs - before.syncs) / seconds)],
  ['sum of all balances', `${number(sum)} (${sumIsRight ? 'unchanged' : `WRONG: expected ${number(expected)}`})`],
];

const width = column => Math.max(...table.map(row => row[column].length));
const [left, right] = [width(0), width(1)];
const rule = `+${'-'.repeat(left + 2)}+${'-'.repeat(right + 2)}+`;
console.log(`\n${rule}`);
for (const [name, value] of table) console.log(`| ${name.padEnd(left)} | ${value.padStart(right)} |`);
console.log(`${rule}\n`);

const problems = [];
if (!sumIsRight) problems.push('money was lost or made');
for (const kind of ['failed', 'disconnects']) {
  for (const [reason, count] of Object.entries(load[kind] ?? {})) problems.push(`${count} calls ${kind}: ${reason}`);
}
if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
