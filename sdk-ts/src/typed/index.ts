// Package `lightcone/typed`: clients of TypeScript modules without generated files.

import { ClientError, DbConnectionBuilder, DbConnectionImpl } from "../client";
import { toError } from "../client/client_error";
import { endpoint } from "../client/socket";
import type { ClientModule, ModuleExports } from "./client_types";
import { remoteModuleOf } from "./remote_module";

export type { ClientModule, ClientValue, ModuleExports, NameDoesNotComeBack } from "./client_types";

/** A connection to a database that runs this module. */
export type Client<Module extends ModuleExports> = DbConnectionImpl<ClientModule<Module>>;

/** Where and how `createClient` connects. */
export interface ClientOptions<Module extends ModuleExports> {
  /** Address of the server, as for `withUri`. */
  uri: string | URL;
  /** Name or identity of the database. */
  databaseName: string;
  /** What `fetchSchema` gave before, so that it is not asked for again; it must be that of the database. */
  schema?: unknown;
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
  const { uri, databaseName, schema, configure } = options;
  const { module, privateTables } = remoteModuleOf(schema ?? (await fetchSchema(uri, databaseName)));
  class Connection extends DbConnectionImpl<any> {
    override allTableNames(): string[] {
      return super.allTableNames().filter((name) => !privateTables.has(name));
    }
  }
  const builder = new DbConnectionBuilder<any>(module, (config) => new Connection(config));
  builder.withUri(uri).withDatabaseName(databaseName);
  configure?.(builder);
  const client = builder.build();
  for (const kind of ["db", "reducers", "procedures"] as const)
    refuseOthers(client[kind], kind, databaseName);
  return client;
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
