import { BinaryReader } from "../core/binary_reader";
import { BinaryWriter } from "../core/binary_writer";
import { ConnectionId } from "../core/connection_id";
import { SenderError } from "../core/errors";
import { Identity } from "../core/identity";
import { encodeModuleDef } from "../core/module_def";
import { isRowTypedQuery, toSql } from "../core/query";
import { Timestamp } from "../core/timestamp";
import type { AnyRowQuery } from "../core/untyped_query";
import { __spacetimedb_end_short_backtrace } from "./backtrace";
import {
  databaseView,
  type Level,
  makeLevel,
  type Numbered,
  number,
  ProcedureCtxImpl,
  queryBuilder,
} from "./calls";
import { forgetTimers } from "./console";
import { Auth, ReducerCtxImpl } from "./ctx";
import { makeDirectHooks } from "./direct_hooks";
import { contextEnvironment } from "./environment_access";
import { errorConstructor } from "./errors";
import { readRequest, writeResponse } from "./http_handlers";
import type { ProcedureEntry, ReducerEntry, Registry, ViewEntry } from "./registry";
import { fastSys } from "./sys";

const NO_ONE = /* @__PURE__ */ new Identity(0n);

function connection(id: bigint): ConnectionId | null {
  return id === 0n ? null : new ConnectionId(id);
}

/** The functions that the host calls (spec 04 §6). */
class Hooks {
  readonly #registry: Registry;
  readonly #root: Level;
  readonly #reducers: Numbered<ReducerEntry>;
  readonly #procedures: Numbered<ProcedureEntry>;
  readonly #views: Numbered<ViewEntry>;
  readonly #anonymousViews: Numbered<ViewEntry>;
  readonly #reader = new BinaryReader(new Uint8Array(0));
  #contexts: Map<Level, ReducerCtxImpl> | undefined;

  constructor(registry: Registry) {
    const root = makeLevel(registry);
    this.#registry = registry;
    this.#root = root;
    this.#reducers = number(root, (r) => r.reducers);
    this.#procedures = number(root, (r) => r.procedures);
    this.#views = number(root, (r) => r.views);
    this.#anonymousViews = number(root, (r) => r.anonymousViews);
  }

  __describe_module__(): Uint8Array {
    return encodeModuleDef(this.#registry.moduleDef);
  }

  __get_error_constructor__(code: number): unknown {
    return errorConstructor(code);
  }

  get __sender_error_class__(): typeof SenderError {
    return SenderError;
  }

  /** The context of a level, for the current call. */
  #context(
    level: Level,
    sender: Identity,
    timestamp: Timestamp,
    connectionId: ConnectionId | null,
  ): ReducerCtxImpl {
    // All tables are looked up before any reducer runs, so that one that is missing is found at once.
    databaseView(this.#root);
    this.#contexts ??= new Map();
    let context = this.#contexts.get(level);
    if (context === undefined) {
      const as = {};
      for (const child of level.children) {
        Object.defineProperty(as, child.name, {
          enumerable: true,
          get: () => {
            const { sender, timestamp, connectionId } = context!;
            return this.#context(child, sender, timestamp, connectionId);
          },
        });
      }
      context = new ReducerCtxImpl(databaseView(level), as);
      this.#contexts.set(level, context);
    }
    // Asked for again in the same call, it keeps its random numbers.
    if (context.timestamp === timestamp && context.sender === sender) return context;
    return context.begin(sender, timestamp, connectionId);
  }

  __call_reducer__(
    id: number,
    sender: bigint,
    connectionId: bigint,
    timestamp: bigint,
    args: DataView,
  ): undefined {
    forgetTimers();
    const { level, entry } = this.#reducers[id]!;
    this.#reader.reset(args);
    const values = entry.decode(this.#reader);
    const context = this.#context(
      level,
      new Identity(sender),
      new Timestamp(timestamp),
      connection(connectionId),
    );
    __spacetimedb_end_short_backtrace(entry.fn, context, values);
  }

  #viewResult(entry: ViewEntry, result: unknown): { data: Uint8Array } {
    const out = new BinaryWriter(256);
    if (isRowTypedQuery(result)) {
      out.writeU8(1);
      out.writeString(toSql(result as AnyRowQuery));
    } else {
      out.writeU8(0);
      entry.encodeRows(
        out,
        entry.isOption ? (result === undefined || result === null ? [] : [result]) : result,
      );
    }
    return { data: out.getBuffer() };
  }

  __call_view__(id: number, sender: bigint, args: Uint8Array): { data: Uint8Array } {
    const { level, entry } = this.#views[id]!;
    const params = entry.decode(new BinaryReader(args));
    databaseView(this.#root);
    const ctx = {
      sender: new Identity(sender),
      db: databaseView(level),
      env: contextEnvironment,
      from: queryBuilder(level),
    };
    return this.#viewResult(entry, __spacetimedb_end_short_backtrace(entry.fn, ctx, params));
  }

  __call_view_anon__(id: number, args: Uint8Array): { data: Uint8Array } {
    const { level, entry } = this.#anonymousViews[id]!;
    const params = entry.decode(new BinaryReader(args));
    databaseView(this.#root);
    const ctx = { db: databaseView(level), env: contextEnvironment, from: queryBuilder(level) };
    return this.#viewResult(entry, __spacetimedb_end_short_backtrace(entry.fn, ctx, params));
  }

  __call_procedure__(
    id: number,
    sender: bigint,
    connectionId: bigint,
    timestamp: bigint,
    args: Uint8Array,
  ): Uint8Array {
    forgetTimers();
    const { level, entry } = this.#procedures[id]!;
    const values = entry.decode(new BinaryReader(args));
    const ctx = new ProcedureCtxImpl(
      level,
      new Identity(sender),
      new Timestamp(timestamp),
      connection(connectionId),
    );
    const result = __spacetimedb_end_short_backtrace(entry.fn, ctx, values);
    const out = new BinaryWriter(64);
    entry.encode(out, result);
    return out.getBuffer();
  }

  __call_http_handler__(
    id: number,
    timestamp: bigint,
    request: Uint8Array,
    body: Uint8Array,
    // Older hosts have none.
    sender?: bigint,
    senderJwt?: Uint8Array,
  ): [Uint8Array, Uint8Array] {
    const handler = this.#registry.handlers[id]!;
    const caller = sender === undefined ? NO_ONE : new Identity(sender);
    const auth = new Auth(null, caller, senderJwt);
    const ctx = new ProcedureCtxImpl(this.#root, caller, new Timestamp(timestamp), null, auth);
    return writeResponse(__spacetimedb_end_short_backtrace(handler, ctx, readRequest(request, body)));
  }
}

export function makeHooks(registry: Registry): object {
  const hooks = new Hooks(registry);
  const buffer = fastSys()?.callBuffer;
  return buffer === undefined ? hooks : Object.assign(hooks, makeDirectHooks(registry, buffer));
}
