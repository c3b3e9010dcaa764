// CPU time of a reducer call in the client alone: a fake socket answers at once. Run after `npm run build`:
// `node bench/calls.mjs [package]`, where package is `lightcone` (default) or `spacetimedb`.

const name = process.argv[2] ?? "lightcone";
const sdk = await import(name === "lightcone" ? "../dist/index.mjs" : name);
const { t, table } = sdk;
const { schemaType } = sdk.schema({
  accounts: table(
    { name: "accounts", indexes: [], constraints: [] },
    t.row({ id: t.u32().primaryKey(), balance: t.i64() }),
  ),
});
const module = {
  versionInfo: { cliVersion: "2.10.1" },
  tables: schemaType.tables,
  reducers: sdk.reducers(sdk.reducerSchema("transfer", { from: t.u32(), to: t.u32(), amount: t.i64() }))
    .reducersType.reducers,
  ...sdk.procedures(),
};

/** Bytes of a call of `transfer`: tag, request id, flags, name, arguments. */
const CALL_BYTES = 1 + 4 + 1 + 4 + 8 + 4 + 16;

/** Answers each call of a payload with a message of its own, in the next task, as a server does. */
const socket = {
  protocol: "v3.bsatn.spacetimedb",
  readyState: 0,
  close() {},
  send(payload) {
    const view = new DataView(payload.buffer, payload.byteOffset, payload.byteLength);
    const answers = [];
    for (let at = 0; at < payload.length; at += CALL_BYTES) {
      const answer = new Uint8Array(1 + 4 + 8 + 1);
      const out = new DataView(answer.buffer);
      answer[0] = 6;
      out.setUint32(1, view.getUint32(at + 1, true), true);
      answer[13] = 1;
      answers.push(answer);
    }
    setImmediate(() => {
      for (const data of answers) this.onmessage({ data });
    });
  },
};
const connection = new sdk.DbConnectionBuilder(module, (config) => new sdk.DbConnectionImpl(config))
  .withUri("ws://localhost")
  .withDatabaseName("bench")
  .withWSFn(async () => socket)
  .build();
await new Promise((resolve) => setTimeout(resolve, 100));
socket.readyState = 1;
socket.onopen();
socket.onmessage({ data: new Uint8Array([0, ...new Array(48).fill(1), 0, 0, 0, 0]) });

async function run(calls) {
  let left = calls;
  await Promise.all(
    Array.from({ length: 40 }, async () => {
      while (left-- > 0) await connection.reducers.transfer({ from: 1, to: 2, amount: 1n });
    }),
  );
}
await run(100_000);
for (let round = 0; round < 3; round++) {
  const before = process.cpuUsage();
  await run(300_000);
  const { user, system } = process.cpuUsage(before);
  console.log(`${name}: ${((user + system) / 300_000).toFixed(2)} µs of CPU for a call`);
}
