// A database of one test: its clients, calls as any user, rows, and what the module logged.

import { SenderError, Timestamp } from "../core";
import type { TestUser } from "./keys";
import type { TestModule } from "./module";
import { microsOf, OWNER, RefusedRequest, type TestServer } from "./server";
import { type JsonProduct, parseJson, rowOf, toJson } from "./values";

/** A row by the names of its columns in the database (`is_done`), with values as a client has them. */
export type TestRow = Record<string, any>;

/** What makes connections: `DbConnection` of generated bindings. */
export interface TestConnectionClass<Connection> {
  builder(): TestConnectionBuilder<Connection>;
}

/** What of a connection's builder a test needs. */
export interface TestConnectionBuilder<Connection> {
  withUri(uri: string): this;
  withDatabaseName(name: string): this;
  withToken(token?: string): this;
  onConnect(callback: (connection: Connection, identity: any, token: string) => void): this;
  onConnectError(callback: (ctx: any, error: Error) => void): this;
  build(): Connection;
}

/** As whom to connect, and what to subscribe to. */
export interface ConnectOptions {
  /** The user. Default: one that no other connection has. */
  as?: TestUser;
  /** Queries, typed or as SQL, whose rows are there when the promise resolves. */
  subscribe?: string | object | (string | object)[];
}

/** What a test does with a connection, whichever package the bindings are for. */
interface AnyTestConnection {
  disconnect(): void;
  subscriptionBuilder(): AnySubscriptionBuilder;
}

interface AnySubscriptionBuilder {
  onApplied(callback: () => void): this;
  onError(callback: (ctx: { event?: Error }, error?: Error) => void): this;
  subscribe(queries: (string | object)[]): unknown;
}

/** The status of an answer to a call that the module refused. */
const REFUSED_BY_MODULE = 530;

let strangers = 0;

/** A database of its own for a test. `await using database = await module.publish()` drops it at the end. */
export class TestDatabase {
  /** Its identity, which is its name for clients. */
  readonly identity: string;
  readonly #server: TestServer;
  readonly #connections = new Set<AnyTestConnection>();

  /** @internal */
  constructor(server: TestServer, identity: string) {
    this.#server = server;
    this.identity = identity;
  }

  /** The address of the server. */
  get uri(): string {
    return this.#server.url;
  }

  /** Credentials of a user, for clients that are connected in another way. */
  token(user: TestUser): string {
    return this.#server.keys.token(user);
  }

  /** A client, connected and subscribed. `"owner"` is the user to whom the database belongs. */
  async connect<Connection>(
    bindings: TestConnectionClass<Connection>,
    options: ConnectOptions = {},
  ): Promise<Connection> {
    const user = options.as ?? { subject: `stranger ${++strangers}` };
    const connection = await new Promise<Connection>((resolve, reject) => {
      bindings
        .builder()
        .withUri(this.uri)
        .withDatabaseName(this.identity)
        .withToken(this.token(user))
        .onConnect(resolve)
        .onConnectError((_ctx, error) => reject(error))
        .build();
    });
    const client = connection as AnyTestConnection;
    this.#connections.add(client);
    const queries = [options.subscribe ?? []].flat();
    if (queries.length > 0) await subscribed(client, queries);
    return connection;
  }

  /**
   * Calls a reducer or procedure by its name in the database (`send_message`), also one that only the scheduler or the owner may call.
   * Arguments are as for a client, with names as in the database, but for an optional one, which is `{ some: value }` or undefined. The
   * result is that of a procedure, as JSON. What a reducer refuses is thrown as `SenderError`.
   */
  async call(name: string, args: unknown[] = [], as: TestUser = OWNER): Promise<unknown> {
    try {
      const text = await this.#request(as, "POST", `call/${encodeURIComponent(name)}`, toJson(args));
      return text === "" ? undefined : parseJson(text);
    } catch (error) {
      if (error instanceof RefusedRequest && error.status === REFUSED_BY_MODULE) {
        throw new SenderError(error.message);
      }
      throw error;
    }
  }

  /** The rows of an SQL query, as the owner, who sees private tables too, or as another user. */
  async sql(query: string, as: TestUser = OWNER): Promise<TestRow[]> {
    const answer = parseJson(await this.#request(as, "POST", "sql", query));
    const [{ schema, rows }] = answer as [{ schema: JsonProduct; rows: unknown[][] }];
    return rows.map((row) => rowOf(schema, row));
  }

  /**
   * Lets so many milliseconds pass, or the time until then, without waiting for them: scheduled reducers and procedures run, and
   * procedures that sleep wake, each at its time and in order. All that came of that is done when the promise resolves, with the time
   * that it is then; `advance(0)` tells it. For modules that were loaded with the option `time`.
   */
  async advance(by: number | Date | Timestamp): Promise<Timestamp> {
    let now = await this.#advance(0n);
    const end = typeof by === "number" ? now + BigInt(Math.round(by * 1000)) : microsOf(by);
    if (end < now) throw new RangeError("time does not go back");
    // The server answers early where very much is due.
    while (now < end) now = await this.#advance(end - now);
    return new Timestamp(now);
  }

  async #advance(us: bigint): Promise<bigint> {
    const time = parseJson(await this.#request(OWNER, "POST", `advance?us=${us}`));
    return BigInt((time as Record<string, number | string>)["__timestamp_micros_since_unix_epoch__"]!);
  }

  /** The messages that the module has logged, in order. */
  async logs(): Promise<string[]> {
    const text = await this.#request(OWNER, "GET", "logs");
    const lines = text.split("\n").filter((line) => line !== "");
    const records = lines.map((line) => JSON.parse(line) as { message: string; target?: string });
    return records.filter(({ target }) => target !== "__spacetimedb__").map(({ message }) => message);
  }

  /** Publishes another version of the module over this one, and keeps the rows; clients that this breaks are disconnected. */
  async update(module: TestModule): Promise<void> {
    const { hostType, bytes } = module.program;
    const plan = parseJson(await this.#request(OWNER, "POST", `pre_publish?host_type=${hostType}`, bytes));
    const { AutoMigrate, ManualMigrate } = plan as {
      AutoMigrate?: { token: string };
      ManualMigrate?: { reason: string };
    };
    if (AutoMigrate === undefined) throw new Error(`the update is refused: ${ManualMigrate?.reason}`);
    const policy = `policy=BreakClients&token=${AutoMigrate.token}`;
    await this.#server.request(
      OWNER,
      "PUT",
      `/v1/database/${this.identity}?host_type=${hostType}&${policy}`,
      bytes,
    );
  }

  /** Disconnects the clients and deletes the database. */
  async drop(): Promise<void> {
    for (const connection of this.#connections) connection.disconnect();
    this.#connections.clear();
    await this.#server.request(OWNER, "DELETE", `/v1/database/${this.identity}`);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.drop();
  }

  async #request(as: TestUser, method: string, route: string, body?: BodyInit): Promise<string> {
    const response = await this.#server.request(as, method, `/v1/database/${this.identity}/${route}`, body);
    return response.text();
  }
}

function subscribed(connection: AnyTestConnection, queries: (string | object)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    connection
      .subscriptionBuilder()
      .onApplied(() => resolve())
      .onError((ctx, error) => reject(error ?? ctx.event))
      .subscribe(queries);
  });
}
