// Connectors of HTTP RPC servers: the server is started on a free port and seeded, or found where it is said to run.

import type { Config } from "../../config";
import type { SystemClass } from "../../core/result";
import { foundAt } from "../../init/addresses";
import { type Back, nodeCommand, startServerOn } from "../../init/backing";
import { type Connector, NotRunning } from "../connector";
import type { ConnectorDefinition, NativeTarget, PrepareContext, Started } from "../definition";
import { descriptionBy, preparedFrom, unknownDescription } from "../described";
import { httpTransport } from "../http_client";
import { type RpcConnectorOptions, rpcConnection } from "./rpc_connector";

export interface RpcDefinitionOptions {
  key: string;
  /** Of its server, relative to the package; run by Node with tsx if no command is said. */
  serverFile: string;
  command?: string[];
  /** `SQLITE_RPC_URL`, say: a server that runs already; it is used as it is. */
  urlVariable: string;
  /** Where such a server usually is; without it, one is started each time. */
  defaultUrl: string | undefined;
  /** Where a flag may name that server as well. */
  urlOfFlag?: ((config: Config) => string) | undefined;
  startCommand: string;
  systemClass?: SystemClass;
  transport?: string;
  /** The variable that the server takes its port from. */
  portVariable: string;
  back: Back;
  connector?: Partial<RpcConnectorOptions>;
  create?: (config: Config, url: string) => Connector;
  /** How the native load generator calls; by `POST /rpc` if left out. */
  nativeKind?: NativeTarget["kind"];
}

/** A server in Node: its file, the beginning of its variables, its usual port, and what it runs on. */
export const onNode = (
  file: string,
  variable: string,
  port: number,
  back: Back,
): Omit<RpcDefinitionOptions, "key"> => ({
  serverFile: `src/rpc-servers/${file}`,
  urlVariable: `${variable}_URL`,
  defaultUrl: `http://127.0.0.1:${port}`,
  portVariable: `${variable}_PORT`,
  startCommand: `pnpm tsx src/rpc-servers/${file}`,
  back,
});

export function rpcDefinition(options: RpcDefinitionOptions): ConnectorDefinition {
  const { key, startCommand } = options;
  return {
    key,
    startCommand,
    usualUrl: () => options.defaultUrl,
    create: (config, { url }) =>
      options.create?.(config, url) ??
      rpcConnection({ name: key, url, initialBalance: config.initialBalance, ...options.connector }),
    nativeTarget: (_, { url }) => ({ kind: options.nativeKind ?? "rpc", url }),
    async prepare(context) {
      const { config } = context;
      const flagged = options.urlOfFlag?.(config);
      const given =
        process.env[options.urlVariable] ?? (flagged === options.defaultUrl ? undefined : flagged);
      if (given !== undefined && !(await isHealthy(given))) {
        throw new NotRunning(
          `${options.urlVariable}: no server at ${given}: start it with \`${startCommand}\``,
        );
      }
      const url = given ?? options.defaultUrl;
      const isFound =
        url !== undefined && (given !== undefined || !config.prep || (await isHealthy(options.defaultUrl!)));
      const started = isFound ? await found(url, options, context) : await start(options, context);
      const root = rpcConnection({ name: key, url: started.url, initialBalance: config.initialBalance });
      const { systemClass = "full-stack", transport = httpTransport() } = options;
      return preparedFrom(context, started, root, { systemClass, transport }, () =>
        descriptionBy(root).catch(() => unknownDescription(config)),
      );
    },
  };
}

function start(options: RpcDefinitionOptions, context: PrepareContext): Promise<Started> {
  const { config, say, asService } = context;
  const { key, serverFile, portVariable, defaultUrl, back, command = nodeCommand(serverFile) } = options;
  const announced: Back = async (given) => {
    const backing = await back(given);
    say(`starting ${serverFile}`);
    return backing;
  };
  return startServerOn(context, announced, {
    ...{ key, command },
    environment: {
      SEED_ACCOUNTS: String(config.accounts),
      SEED_INITIAL_BALANCE: String(config.initialBalance),
      MAX_POOL: String(config.poolMax),
      [portVariable]: asService && defaultUrl !== undefined ? new URL(defaultUrl).port : "0",
    },
  });
}

async function found(
  url: string,
  { key, startCommand }: RpcDefinitionOptions,
  { say }: PrepareContext,
): Promise<Started> {
  if (!(await isHealthy(url))) throw new NotRunning(`no server at ${url}: start it with \`${startCommand}\``);
  say(`${key}: using the server at ${url}`);
  return foundAt(url);
}

async function isHealthy(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url.replace(/\/+$/, "")}/rpc`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"name":"health"}',
      signal: AbortSignal.timeout(2000),
    });
    const answer = (await response.json()) as { ok?: boolean };
    return response.ok && answer.ok !== false;
  } catch {
    return false;
  }
}
