import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import vm from "node:vm";
import { build } from "esbuild";

// A stand-in for the module host (spec 04): bundles a module as the CLI does, evaluates it in a bare context, and answers
// `spacetime:sys` from a table of functions that a test gives.

const here = dirname(fileURLToPath(import.meta.url));
export const packageDirectory = join(here, "..", "..");

/** The sources of this package, the published one, or a directory with this package, built. */
export type Sdk = "ours" | "npm" | { path: string };

/** A call of a host function, and what came back. */
export type Call = [name: string, ...args: unknown[]];

export type SysFunctions = Record<string, (...args: any[]) => unknown>;

const SYS_2_0 = [
  "table_id_from_name",
  "index_id_from_name",
  "datastore_table_row_count",
  "datastore_table_scan_bsatn",
  "datastore_index_scan_point_bsatn",
  "datastore_index_scan_range_bsatn",
  "datastore_delete_by_index_scan_point_bsatn",
  "datastore_delete_by_index_scan_range_bsatn",
  "datastore_delete_all_by_eq_bsatn",
  "datastore_insert_bsatn",
  "datastore_update_bsatn",
  "row_iter_bsatn_advance",
  "row_iter_bsatn_close",
  "console_log",
  "console_timer_start",
  "console_timer_end",
  "identity",
  "get_jwt_payload",
  "volatile_nonatomic_schedule_immediate",
  "procedure_start_mut_tx",
  "procedure_commit_mut_tx",
  "procedure_abort_mut_tx",
  "procedure_http_request",
];
const SYS_2_1 = ["datastore_clear"];
const SYS_2_2 = ["env_get"];

const bundles = new Map<string, Promise<string>>();

/** One script that leaves the namespace of the module in `exports`. `source` is TypeScript that imports `spacetimedb/server`. */
export function bundle(source: string, sdk: Sdk): Promise<string> {
  const key = `${JSON.stringify(sdk)}:${source}`;
  let made = bundles.get(key);
  if (made === undefined) {
    made = bundleNow(source, sdk);
    bundles.set(key, made);
  }
  return made;
}

async function bundleNow(source: string, sdk: Sdk): Promise<string> {
  const result = await build({
    stdin: {
      contents: source,
      loader: "ts",
      resolveDir: join(packageDirectory, "test"),
      sourcefile: "module.ts",
    },
    bundle: true,
    write: false,
    format: "iife",
    globalName: "exports",
    target: "es2022",
    platform: "browser",
    logLevel: "silent",
    alias:
      sdk === "npm"
        ? {}
        : {
            "spacetimedb/server":
              sdk === "ours" ? join(packageDirectory, "src/server/index.ts") : join(sdk.path, "server.mjs"),
            spacetimedb:
              sdk === "ours" ? join(packageDirectory, "src/client/index.ts") : join(sdk.path, "index.mjs"),
          },
    plugins: [
      {
        name: "spacetime-sys",
        setup(plugin) {
          plugin.onResolve({ filter: /^spacetime:sys@/ }, (args) => ({ path: args.path, namespace: "sys" }));
          plugin.onLoad({ filter: /.*/, namespace: "sys" }, (args) => {
            const names = { "2.0": ["moduleHooks", ...SYS_2_0], "2.1": SYS_2_1, "2.2": SYS_2_2 }[
              args.path.slice(-3)
            ]!;
            return {
              contents: names.map((name) => `export const ${name} = __sys.${name};`).join("\n"),
              loader: "js",
            };
          });
        },
      },
    ],
  });
  return result.outputFiles![0]!.text;
}

/** What Node's engine lacks, and the published package needs. */
export const LATER_LANGUAGE = `
if (!Set.prototype.isSubsetOf) {
  Set.prototype.isSubsetOf = function (other) { for (const x of this) if (!other.has(x)) return false; return true; };
}
Symbol.dispose ??= Symbol("Symbol.dispose");
if (typeof Iterator === "undefined") globalThis.Iterator = class Iterator {};
`;

export class Module {
  readonly hooks: any;
  /** Every host call since the last `takeCalls`. */
  private calls: Call[] = [];
  readonly context: vm.Context;

  private constructor(code: string, functions: SysFunctions, prepare?: (context: vm.Context) => void) {
    const hooksSymbol = Symbol("SpacetimeDB.moduleHooks.v2");
    const sys: Record<string, unknown> = { moduleHooks: hooksSymbol };
    for (const name of [...SYS_2_0, ...SYS_2_1, ...SYS_2_2]) {
      sys[name] = (...args: unknown[]) => {
        this.calls.push([name, ...args.map(recorded)]);
        const answer = functions[name];
        if (answer === undefined) throw new Error(`the test has no answer for ${name}`);
        return answer.apply(this, args);
      };
    }
    for (const [name, value] of Object.entries(functions)) sys[name] ??= value;
    this.context = vm.createContext({ TextEncoder, TextDecoder, __sys: sys });
    vm.runInContext(LATER_LANGUAGE, this.context);
    prepare?.(this.context);
    vm.runInContext(code, this.context, { filename: "spacetimedb_module" });
    const namespace = vm.runInContext("exports", this.context);
    this.hooks = namespace.default[hooksSymbol].call(namespace.default, namespace);
  }

  static async load(
    source: string,
    sdk: Sdk,
    functions: SysFunctions = {},
    prepare?: (context: vm.Context) => void,
  ): Promise<Module> {
    return new Module(await bundle(source, sdk), functions, prepare);
  }

  takeCalls(): Call[] {
    const { calls } = this;
    this.calls = [];
    return calls;
  }

  describe(): string {
    return hex(this.hooks.__describe_module__());
  }

  /** Calls a reducer with arguments in hexadecimal. */
  reducer(
    id: number,
    args = "",
    { sender = 0x1234n, connection = 0n, timestamp = 1700000000000000n } = {},
  ): unknown {
    const bytes = Buffer.from(args, "hex");
    const buffer = new ArrayBuffer(4096);
    new Uint8Array(buffer).set(bytes);
    return this.hooks.__call_reducer__(
      id,
      sender,
      connection,
      timestamp,
      new DataView(buffer, 0, bytes.length),
    );
  }
}

/** The text of an error that a class of this host makes, as `__get_error_constructor__` gives it. */
export function hostError(module: Module, code: number, message: string): unknown {
  return new (module.hooks.__get_error_constructor__(code))(message);
}

function recorded(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return hex(value as Uint8Array);
  if (value !== null && typeof value === "object" && "byteLength" in value) {
    return `ArrayBuffer(${(value as ArrayBuffer).byteLength})`;
  }
  return value;
}

export function hex(bytes: ArrayBufferView): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");
}
