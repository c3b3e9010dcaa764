import type { ConnectionId } from "../core/connection_id";
import type { Identity } from "../core/identity";
import { makeQueryBuilder } from "../core/query";
import type { Timestamp } from "../core/timestamp";
import type { Uuid } from "../core/uuid";
import { type Auth, CallRandom, databaseIdentity, ReducerCtxImpl } from "./ctx";
import { contextEnvironment } from "./environment_access";
import { httpClient } from "./http";
import type { Random } from "./random";
import type { ProcedureEntry, ReducerEntry, Registry, ViewEntry } from "./registry";
import { makeTableView } from "./table_view";
import { inTransaction } from "./transactions";

/** A module or submodule at run time. */
export interface Level {
  /** Empty for the module itself, else the names of the submodules with dots, the last one too. */
  readonly prefix: string;
  readonly name: string;
  readonly registry: Registry;
  readonly children: readonly Level[];
}

export function makeLevel(registry: Registry, name = "", prefix = ""): Level {
  return {
    prefix,
    name,
    registry,
    children: registry.submodules.map((sub) =>
      makeLevel(sub.registry, sub.namespace, `${prefix}${sub.namespace}.`),
    ),
  };
}

/** A level and all below it, the level itself first: the order in which functions are counted. */
export function allLevels(level: Level): Level[] {
  return [level, ...level.children.flatMap(allLevels)];
}

const tableViews = new WeakMap<Level, object>();

/** The tables of a level. Their ids are looked up on first use, and again if that failed. */
export function databaseView(level: Level): object {
  let known = tableViews.get(level);
  if (known === undefined) {
    const view: Record<string, object> = {};
    const { registry } = level;
    for (const def of registry.moduleDef.tables) {
      view[def.sourceName] = makeTableView(registry.typespace, def, level.prefix);
    }
    for (const child of level.children) view[child.name] = databaseView(child);
    known = Object.freeze(view);
    tableViews.set(level, known);
  }
  return known;
}

/** An object that has, for each submodule, what `make` gives, made when first read. */
export function forChildren(level: Level, make: (child: Level) => unknown): object {
  const result = {};
  for (const child of level.children) {
    let made: unknown;
    Object.defineProperty(result, child.name, {
      enumerable: true,
      get() {
        made ??= make(child);
        return made;
      },
    });
  }
  return result;
}

/** The context of a transaction at a level, and those of its submodules. */
export function transactionCtx(
  level: Level,
  sender: Identity,
  timestamp: Timestamp,
  connectionId: ConnectionId | null,
  auth: Auth | undefined,
): ReducerCtxImpl {
  const as = forChildren(level, (child) => transactionCtx(child, sender, timestamp, connectionId, auth));
  return new ReducerCtxImpl(databaseView(level), as).begin(sender, timestamp, connectionId, auth);
}

/** The context of a procedure or handler. */
export class ProcedureCtxImpl {
  readonly sender: Identity;
  readonly timestamp: Timestamp;
  readonly connectionId: ConnectionId | null;
  readonly env = contextEnvironment;
  readonly http = httpClient;
  readonly as: object;
  readonly #level: Level;
  readonly #call: CallRandom;
  readonly #auth: Auth | undefined;

  /** `auth`: of its transactions, if it is not that of the connection. */
  constructor(
    level: Level,
    sender: Identity,
    timestamp: Timestamp,
    connectionId: ConnectionId | null,
    auth?: Auth,
    call: CallRandom = new CallRandom(timestamp),
  ) {
    this.#level = level;
    this.sender = sender;
    this.timestamp = timestamp;
    this.connectionId = connectionId;
    this.#auth = auth;
    this.#call = call;
    this.as = forChildren(
      level,
      (child) => new ProcedureCtxImpl(child, sender, timestamp, connectionId, auth, call),
    );
  }

  get databaseIdentity(): Identity {
    return databaseIdentity();
  }

  get identity(): Identity {
    return databaseIdentity();
  }

  get random(): Random {
    return this.#call.random;
  }

  newUuidV4(): Uuid {
    return this.#call.newUuidV4();
  }

  newUuidV7(): Uuid {
    return this.#call.newUuidV7();
  }

  withTx<T>(body: (ctx: ReducerCtxImpl) => T): T {
    return inTransaction(
      (timestamp) => transactionCtx(this.#level, this.sender, timestamp, this.connectionId, this.#auth),
      body,
    );
  }
}

const queryBuilders = new WeakMap<Level, object>();

/** Where queries of a view start. */
export function queryBuilder(level: Level): object {
  let builder = queryBuilders.get(level);
  if (builder === undefined) {
    builder = makeQueryBuilder(level.registry.schemaType);
    queryBuilders.set(level, builder);
  }
  return builder;
}

/** Functions of one kind of all levels, in the order of their numbers. */
export type Numbered<T> = readonly { level: Level; entry: T }[];

export function number<T extends ReducerEntry | ProcedureEntry | ViewEntry>(
  root: Level,
  entries: (registry: Registry) => readonly T[],
): Numbered<T> {
  return allLevels(root).flatMap((level) => entries(level.registry).map((entry) => ({ level, entry })));
}
