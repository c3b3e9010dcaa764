// The bench process speaks to a database itself: no server in between, so another class than the full stacks (section 13).
// What a server would do is done here, under the same names.

import type { Config } from "../config";
import type { Fairness } from "../core/result";
import type { RpcMethods } from "../rpc-servers/rpc";
import { accountsByMethods } from "./accounts";
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

/** A worker has the client of the root where they share it. */
function connection(
  options: DirectOptions,
  config: Config,
  url: string,
  clientOfRoot?: () => DirectClient | undefined,
): Connector {
  const { key: name } = options;
  let client: DirectClient | undefined;
  const clientNow = () => client ?? clientOfRoot?.();
  const open = async () => {
    client = await options.connect(url, config);
  };
  const call = async (method: string, args: CallArguments = {}) => {
    const methods = clientNow()?.methods;
    if (!methods) throw new Error(`${name}: not open`);
    if (!Object.hasOwn(methods, method)) throw new Error(`${name}: unknown method: ${method}`);
    return methods[method]!(args);
  };
  const isWorker = clientOfRoot !== undefined;
  return {
    ...{ name, open, call },
    ...accountsByMethods({ name, initialBalance: config.initialBalance, isWorker }, call),
    async close() {
      await client?.close();
      client = undefined;
    },
    async createWorker() {
      const worker = connection(options, config, url, clientNow);
      if (!options.isShared) await worker.open();
      return worker;
    },
  };
}

export function directDefinition(options: DirectOptions): ConnectorDefinition {
  const { key, startCommand, nativeTarget, columns, failure = (error: unknown) => error } = options;
  return {
    ...{ key, startCommand },
    ...(nativeTarget && { nativeTarget }),
    create: (config, { url }) => connection(options, config, url),
    async prepare(context) {
      const found = await options.start(context);
      const root = connection(options, context.config, found.url);
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
