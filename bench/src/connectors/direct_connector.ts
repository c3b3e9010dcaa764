// The bench process speaks to a database itself: no server in between, so another class than the full stacks (section 13).
// What a server would do is done here, under the same names.

import type { Config } from "../config";
import type { Fairness } from "../core/result";
import type { RpcMethods } from "../rpc-servers/rpc";
import { AccountsConnector } from "./accounts_connector";
import type { CallArguments, Connector } from "./connector";
import type { ConnectorDefinition, PrepareContext, Started } from "./definition";
import { descriptionBy, preparedFrom } from "./described";

/** A connection or a pool, and what can be asked of it: `describe` is among it. */
export interface DirectClient {
  methods: RpcMethods;
  close(): unknown;
}

export interface DirectOptions extends Pick<ConnectorDefinition, "key" | "startCommand" | "nativeTarget"> {
  /** Workers have the client of the root together, or each its own. */
  isShared: boolean;
  columns: Pick<Fairness, "transport"> & Partial<Fairness>;
  /** Starts the database, or finds it. */
  start(context: PrepareContext): Promise<Started>;
  connect(url: string, config: Config): Promise<DirectClient>;
  /** What to say of a database that cannot be asked. */
  failure?(error: unknown, url: string): Error;
}

class DirectConnector extends AccountsConnector {
  private client: DirectClient | undefined;

  constructor(
    private readonly options: DirectOptions,
    private readonly config: Config,
    private readonly url: string,
    private readonly root?: DirectConnector,
  ) {
    super(options.key, config.initialBalance, root !== undefined);
  }

  async open(): Promise<void> {
    this.client = await this.options.connect(this.url, this.config);
  }

  async close(): Promise<void> {
    await this.client?.close();
    this.client = undefined;
  }

  async createWorker(): Promise<Connector> {
    const worker = new DirectConnector(this.options, this.config, this.url, this);
    if (!this.options.isShared) await worker.open();
    return worker;
  }

  async call(name: string, args: CallArguments = {}): Promise<unknown> {
    const client = this.client ?? this.root?.client;
    if (!client) throw new Error(`${this.name}: not open`);
    const method = Object.hasOwn(client.methods, name) ? client.methods[name] : undefined;
    if (!method) throw new Error(`${this.name}: unknown method: ${name}`);
    return method(args);
  }
}

export function directDefinition(options: DirectOptions): ConnectorDefinition {
  const { key, startCommand, nativeTarget, columns, failure = (error: unknown) => error } = options;
  return {
    ...{ key, startCommand },
    ...(nativeTarget && { nativeTarget }),
    create: (config, { url }) => new DirectConnector(options, config, url),
    async prepare(context) {
      const found = await options.start(context);
      const root = new DirectConnector(options, context.config, found.url);
      const stop = async () => {
        await root.close();
        await found.stop();
      };
      const described = async () => {
        const description = await descriptionBy(root);
        // Only test-1 is seeded from here once more.
        if (context.test !== "test-1") await root.close();
        return description;
      };
      const failed = (error: unknown) => {
        throw failure(error, found.url);
      };
      await root.open().catch((error: unknown) => found.stop().then(() => failed(error)));
      const all = { systemClass: "database-direct", ...columns } as const;
      return preparedFrom(context, { ...found, stop }, root, all, () => described().catch(failed));
    },
  };
}
