import { beforeEach, describe, expect, it } from "vitest";
import { Datastore } from "./support/datastore";
import { hex, Module, type Sdk } from "./support/host";
import { type ModuleVector, vectors } from "./support/replay";

/** The module of 04 §13.3; server_vectors.test.ts replays the calls of the file. */
const procedures = vectors<{ modules: ModuleVector[] }>("04-calls.json").modules.find(
  ({ name }) => name === "procedures",
)!;
const SOURCE = procedures.source.join("\n");

const REQUEST = Buffer.from(
  `000100000004000000686f7374010000006801${"14000000"}${Buffer.from("http://h/v1/x/y?q=1z").toString("hex")}02`,
  "hex",
);

/** Procedure numbers: exports in alphabetical order. */
const ASK = 0;
const INNER = 1;
const NOTHING = 2;
const TWICE = 3;
const WHO = 4;

describe.each<[string, Sdk, boolean]>([
  ["lightcone", "ours", false],
  ["lightcone, calls in a buffer (docs/js-abi.md)", "ours", true],
  ["the published package", "npm", false],
])("procedures and handlers (04 §13.3): %s", (_, sdk, isDirect) => {
  const callBuffer = new ArrayBuffer(4096);
  let data: Datastore;
  let module: Module;
  let requests: [string, unknown][];

  beforeEach(async () => {
    data = new Datastore();
    requests = [];
    const functions = {
      ...data.functions,
      procedure_commit_mut_tx: () => data.functions["procedure_commit_mut_tx"]!(),
      procedure_http_request: (request: Uint8Array, body: unknown) => {
        requests.push([hex(request), body]);
        return [Buffer.from("0000000002c800", "hex"), Buffer.from("OK!")];
      },
    };
    module = await Module.load(SOURCE, sdk, functions, (context) => {
      if (!isDirect) return;
      const value = { version: 1, callBuffer };
      Object.defineProperty(context, Symbol.for("lightcone.sys.1"), { value });
    });
  });

  const standardCall = (id: number, args: Uint8Array): Uint8Array =>
    module.hooks.__call_procedure__(id, 0x1234n, 7n, 1700000000000000n, args);
  const directCall = (id: number, args: Uint8Array): Uint8Array => {
    const bytes = new Uint8Array(callBuffer).fill(0);
    const view = new DataView(callBuffer);
    view.setBigUint64(0, 0x1234n, true);
    view.setBigUint64(32, 7n, true);
    view.setBigInt64(48, 1700000000000000n, true);
    bytes.set(args, 64);
    return module.hooks.__lightcone_call_procedure__(id, args.length);
  };
  const call = (id: number, args = ""): string =>
    hex((isDirect ? directCall : standardCall)(id, Buffer.from(args, "hex")));
  const take = () => data.take().filter((line) => !line.includes("_id_from_name"));

  it("makes a request and a transaction", () => {
    expect(call(ASK, "2a000000")).toBe(`0c000000${Buffer.from("42:200:OK!:2").toString("hex")}`);
    expect(requests).toEqual([
      [
        "020100000003000000782d6101000000620119000000687474703a2f2f6578616d706c652e746573742f613f623d3102",
        "hi",
      ],
    ]);
    expect(take()).toEqual(["start", "insert(4096, 13) 00000000000000000100000078", "row_count", "commit"]);
  });

  it("knows who called, and gives each transaction its time", () => {
    const text = (n: number) => {
      const length = Buffer.alloc(4);
      length.writeUInt32LE(n);
      return Buffer.from(call(WHO, length.toString("hex")), "hex")
        .subarray(4)
        .toString();
    };
    const caller = `${"1234".padStart(64, "0")},${"7".padStart(32, "0")}`;
    const expected = `${caller},1700000000000000 ${caller},1700000000000001false 3 `;
    expect(text(0)).toBe(expected);
    expect(text(2_000_000)).toBe(expected + "x".repeat(2_000_000));
    expect(text(3)).toBe(`${expected}xxx`);
  });

  it("returns nothing as no bytes", () => {
    expect(call(NOTHING)).toBe("");
  });

  it("runs a transaction again if committing it fails, once", () => {
    let failures = 1;
    data.functions["procedure_commit_mut_tx"] = () => {
      data.log.push("commit");
      if (failures-- > 0) throw new Error("conflict");
    };
    call(TWICE);
    expect(take()).toEqual([
      "start",
      "log(2) body 1700000000000001n",
      "commit",
      "log(1) committing anonymous transaction failed",
      "start",
      "log(2) body 1700000000000001n",
      "commit",
    ]);
    failures = 2;
    expect(() => call(TWICE)).toThrow("transaction retry failed again");
  });

  it("rolls a transaction back that throws", () => {
    expect(() => call(INNER)).toThrow(expect.objectContaining({ name: "SenderError", message: "inner" }));
    expect(take()).toEqual(["start", "abort"]);
  });

  it("answers a request", () => {
    const [head, body] = module.hooks.__call_http_handler__(
      0,
      1700000000000000n,
      REQUEST,
      Buffer.from("BODY"),
    );
    expect(hex(head)).toBe("0100000003000000782d72010000003102c900");
    expect(Buffer.from(body).toString()).toBe("h GET http://h/v1/x/y?q=1z BODY");
  });
});

describe("handlers", () => {
  it("have the sender that was made up for the request, and their transactions its token too", async () => {
    const module = await Module.load(
      `import { schema, SyncResponse, table, t } from "spacetimedb/server";
       const s = schema({ user: table({}, { a: t.u8() }) });
       export const who = s.httpHandler((ctx) => {
         const inside = ctx.withTx(({ sender, senderAuth }) =>
           [sender.toHexString(), senderAuth.jwt?.subject, senderAuth.isInternal].join(" "));
         return new SyncResponse(ctx.sender.toHexString() + " " + inside);
       });
       export default s;`,
      "ours",
      new Datastore().functions,
    );
    const answer = (...sender: unknown[]) => {
      const [, body] = module.hooks.__call_http_handler__(0, 0n, REQUEST, new Uint8Array(), ...sender);
      return Buffer.from(body).toString();
    };
    for (const [sender, hex, auth] of [
      [[0x1234n, Buffer.from('{"sub":"s"}')], "1234", "s false"],
      [[0x1234n, Buffer.from("")], "1234", " false"],
      [[], "", " false"],
      // The database itself.
      [[0xc200n], "c200", " true"],
    ] as [unknown[], string, string][]) {
      const text = hex.padStart(64, "0");
      expect(answer(...sender)).toBe(`${text} ${text} ${auth}`);
    }
  });
});

describe("submodules", () => {
  it.each<Sdk>(["ours", "npm"])("have tables and functions of their own: %s", async (sdk) => {
    const data = new Datastore();
    const module = await Module.load(
      `import { schema, t, table } from "spacetimedb/server";
       const lib = schema({ item: table({}, { id: t.u32().primaryKey(), s: t.string() }) });
       const doIt = lib.reducer({ id: t.u32() }, (ctx, { id }) => { ctx.db.item.insert({ id, s: "lib" }); });
       const s = schema({ user: table({}, { a: t.u8() }), lib: { default: lib, doIt } });
       export const root = s.reducer((ctx) => {
         ctx.db.lib.item.insert({ id: 1, s: "root" });
         ctx.as.lib.db.item.insert({ id: 2, s: "as" });
         console.log(ctx.as.lib.sender.isEqual(ctx.sender), Object.keys(ctx.db));
         doIt(ctx.as.lib, { id: 3 });
       });
       export default s;`,
      sdk,
      data.functions,
    );
    module.reducer(0);
    module.reducer(1, "07000000");
    const lines = data.take();
    expect(new Set(lines.filter((line) => line.startsWith("table_id")))).toEqual(
      new Set(['table_id_from_name("user")', 'table_id_from_name("lib.item")']),
    );
    expect(lines).toContain('index_id_from_name("lib.item_id_idx_btree")');
    expect(lines.filter((line) => !line.includes("_id_from"))).toEqual([
      "insert(4096, 12) 0100000004000000726f6f74",
      "insert(4096, 10) 02000000020000006173",
      "log(2) true [ 'user', 'lib' ]",
      "insert(4096, 11) 03000000030000006c6962",
      "insert(4096, 11) 07000000030000006c6962",
    ]);
  });
});
