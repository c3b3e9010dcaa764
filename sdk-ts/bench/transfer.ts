// How long a transfer takes in the module alone, with stubs in place of the tables of a host: `npm run bench`.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import vm from "node:vm";
import { bundle, LATER_LANGUAGE, packageDirectory } from "../test/support/host";

const CALLS = 1_000_000;
const RUNS = 5;

const source = readFileSync(join(packageDirectory, "../modules/transfer-ts-npm/src/index.ts"), "utf8");

// The stubs live in the context of the module, so that calling them costs next to nothing.
const STUBS = `
const moduleHooks = Symbol("hooks");
const balances = new BigInt64Array(1000).fill(1000000000n);
let held = -1;
let lastBuffer, lastView;
const viewOf = (buffer) => buffer === lastBuffer ? lastView : (lastView = new DataView(lastBuffer = buffer));
const none = () => { throw new Error("not stubbed"); };
globalThis.__sys = new Proxy({
  moduleHooks,
  table_id_from_name: () => 4096,
  index_id_from_name: () => 1,
  datastore_index_scan_point_bsatn: (index, buffer, length) => { held = viewOf(buffer).getUint32(0, true); return 1; },
  row_iter_bsatn_advance: (iter, buffer) => {
    const view = viewOf(buffer);
    view.setUint32(0, held, true);
    view.setBigInt64(4, balances[held], true);
    return -12;
  },
  datastore_update_bsatn: (table, index, buffer, length) => {
    const view = viewOf(buffer);
    balances[view.getUint32(0, true)] = view.getBigInt64(4, true);
    return 0;
  },
}, { get: (target, name) => target[name] ?? none });
globalThis.__direct = () => {
  const callBuffer = new ArrayBuffer(4096);
  globalThis[Symbol.for("lightcone.sys.1")] = {
    version: 1,
    callBuffer,
    point_read: (index, buffer, length) => {
      const view = viewOf(buffer);
      const id = view.getUint32(0, true);
      view.setBigInt64(4, balances[id], true);
      return 12;
    },
    row_update: __sys.datastore_update_bsatn,
  };
};
`;

const DRIVE = `
(calls, direct) => {
  const hooks = exports.default[__sys.moduleHooks].call(exports.default, exports);
  const buffer = direct ? globalThis[Symbol.for("lightcone.sys.1")].callBuffer : new ArrayBuffer(4096);
  const at = direct ? 64 : 0;
  const view = new DataView(buffer);
  const once = (i) => {
    view.setUint32(at, i % 1000, true);
    view.setUint32(at + 4, (i * 7 + 1) % 1000 === i % 1000 ? (i + 1) % 1000 : (i * 7 + 1) % 1000, true);
    view.setBigInt64(at + 8, 1n, true);
    if (direct) hooks.__lightcone_call_reducer__(1, 16);
    else hooks.__call_reducer__(1, 0x1234n, 7n, 1700000000000000n, new DataView(buffer, 0, 16));
  };
  for (let i = 0; i < 100000; i++) once(i);
  return () => { for (let i = 0; i < calls; i++) once(i); };
}`;

for (const [name, sdk, direct] of [
  ["npm spacetimedb 2.10.1, standard functions", "npm", false],
  ["lightcone, standard functions", "ours", false],
  ["lightcone, functions of this host", "ours", true],
] as const) {
  const context = vm.createContext({ TextEncoder, TextDecoder });
  vm.runInContext(LATER_LANGUAGE + STUBS, context);
  if (direct) vm.runInContext("__direct()", context);
  vm.runInContext(await bundle(source, sdk), context);
  const run = vm.runInContext(DRIVE, context)(CALLS, direct);
  const micros = [];
  for (let i = 0; i < RUNS; i++) {
    const start = process.hrtime.bigint();
    run();
    micros.push(Number(process.hrtime.bigint() - start) / 1000 / CALLS);
  }
  micros.sort((a, b) => a - b);
  console.log(`${name}: ${micros[RUNS >> 1]!.toFixed(3)} µs per transfer (median of ${RUNS})`);
}
