// Package `lightcone/typed`: clients of TypeScript modules without generated files.

import {
  ClientError,
  type ConvertToAccessorMap,
  convertToAccessorMap,
  DbConnectionBuilder,
  type DbConnectionConfig,
  DbConnectionImpl,
  makeQueryBuilder,
  type QueryBuilder,
} from "../client";
import { toError } from "../client/client_error";
import { endpoint } from "../client/socket";
import type { ClientModule, ModuleExports } from "./client_types";
import { remoteModuleOf } from "./remote_module";

export type { ClientModule, ClientValue, ModuleExports, NameDoesNotComeBack } from "./client_types";

/** A connection to a database that runs this module. */
export type Client<Module extends ModuleExports> = DbConnectionImpl<ClientModule<Module>>;

/** What generated bindings export, for hooks and for connections that are made later or more than once. */
export interface Bindings<Module extends ModuleExports> {
  /** Sets a connection up, as `DbConnection.builder()` does; the address and the database are known. */
  builder(): DbConnectionBuilder<Client<Module>>;
  /** Queries on the tables and views, to subscribe to. */
  tables: QueryBuilder<ClientModule<Module>>;
  /** The reducers, for `useReducer`. */
  reducers: ConvertToAccessorMap<ClientModule<Module>["reducers"]>;
  /** The procedures, for `useProcedure`. */
  procedures: ConvertToAccessorMap<ClientModule<Module>["procedures"]>;
}

/** Where a database is, and what it is made of. */
export interface BindingsOptions {
  /** Address of the server, as for `withUri`. */
  uri: string | URL;
  /** Name or identity of the database. */
  databaseName: string;
  /** What `fetchSchema` gave before, so that it is not asked for again; it must be that of the database. */
  schema?: unknown;
}

/** Where and how `createClient` connects. */
export interface ClientOptions<Module extends ModuleExports> extends BindingsOptions {
  /** Sets the connection up further: its token, callbacks, limits. */
  configure?: (builder: DbConnectionBuilder<Client<Module>>) => void;
}

/** Time until the server has sent the schema, in milliseconds. */
const SCHEMA_TIMEOUT_MS = 30_000;

/**
 * A connection whose types come from the sources of a TypeScript module, and whose tables and functions come from the database.
 *
 * ```ts
 * const client = await createClient<typeof import("../spacetimedb/src")>({ uri, databaseName });
 * client.subscriptionBuilder().subscribe((tables) => tables.task);
 * await client.reducers.addTask({ title: "Write a letter" });
 * ```
 *
 * The promise is kept when the connection has been started; calls wait until it is there. It is rejected with LC0860 if
 * the server has no schema that says enough.
 */
export async function createClient<Module extends ModuleExports>(
  options: ClientOptions<Module>,
): Promise<Client<Module>> {
  const builder = (await loadBindings<Module>(options)).builder();
  options.configure?.(builder);
  return builder.build();
}

/**
 * What generated bindings export, from the sources of a TypeScript module and the schema of its database: for the providers and hooks of
 * frameworks.
 *
 * ```tsx
 * const { builder, tables, reducers } = await loadBindings<typeof import("../spacetimedb/src")>({ uri, databaseName });
 * <SpacetimeDBProvider connectionBuilder={builder()}>…</SpacetimeDBProvider>
 * const [tasks] = useTable(tables.task);
 * ```
 */
export async function loadBindings<Module extends ModuleExports>(
  options: BindingsOptions,
): Promise<Bindings<Module>> {
  const { uri, databaseName, schema } = options;
  const { module, privateTables } = remoteModuleOf(schema ?? (await fetchSchema(uri, databaseName)));
  class Connection extends DbConnectionImpl<any> {
    constructor(config: DbConnectionConfig<any>) {
      super(config);
      for (const kind of ["db", "reducers", "procedures"] as const)
        refuseOthers(this[kind], kind, databaseName);
    }

    override allTableNames(): string[] {
      return super.allTableNames().filter((name) => !privateTables.has(name));
    }
  }
  const bindings = {
    builder: () =>
      new DbConnectionBuilder<any>(module, (config) => new Connection(config))
        .withUri(uri)
        .withDatabaseName(databaseName),
    tables: makeQueryBuilder({ tables: module.tables }),
    reducers: convertToAccessorMap(module.reducers),
    procedures: convertToAccessorMap(module.procedures),
  };
  return bindings as unknown as Bindings<Module>;
}

/** The schema of a database, for `createClient`. */
export async function fetchSchema(uri: string | URL, databaseName: string): Promise<unknown> {
  const url = endpoint(new URL(uri), `v1/database/${encodeURIComponent(databaseName)}/schema?version=10`);
  url.protocol = url.protocol.replace("ws", "http");
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(SCHEMA_TIMEOUT_MS) });
    if (response.ok) return await response.json();
  } catch (cause) {
    throw new ClientError("LC0831", `cannot fetch ${url.href}: ${toError(cause).message}`, { cause });
  }
  const text = (await response.text().catch(() => "")).slice(0, 300);
  throw new ClientError(
    "LC0860",
    response.status === 400
      ? `the server has no schema of version 10 (${text}); it is too old: use generated bindings`
      : `the server did not send the schema of ${databaseName}: ${response.status} ${text}`,
  );
}

/** What applications, tests and consoles ask any object for. */
const ASKED_OF_ANY = new Set(["then", "toJSON", "asymmetricMatch", "nodeType", "$$typeof"]);

/** A name that the sources have and the database has not is an error that says so, and not `undefined`. */
function refuseOthers(members: object, kind: string, databaseName: string): void {
  const get = (target: object, name: string | symbol): unknown => {
    if (typeof name === "symbol" || name in target || ASKED_OF_ANY.has(name))
      return Reflect.get(target, name);
    throw new ClientError(
      "LC0860",
      `database ${databaseName} has no ${name} in ${kind}; is its module made from these sources?`,
    );
  };
  Object.setPrototypeOf(members, new Proxy(Object.prototype, { get }));
}
