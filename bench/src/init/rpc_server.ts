// Connectors of HTTP RPC servers: the server is started on a free port and seeded, or found where it is said to run.

import { join } from "node:path";
import type { Config } from "../config";
import { NotRunning } from "../connectors/connector";
import type { ConnectorDefinition, NativeTarget, PrepareContext, Prepared } from "../connectors/definition";
import { httpTransport } from "../connectors/http_client";
import { RpcConnector, type RpcConnectorOptions } from "../connectors/rpc/rpc_connector";
import { processesListeningOn } from "../core/cpu";
import type { Fairness } from "../core/result";
import { packageDirectory } from "./commands";

/** What a server says of itself by the RPC method `describe`, read from the database that it uses. */
export interface RpcDescription {
  isolation: string;
  durability: string;
  poolMax: number | null;
  roundTripsPerTx: number;
  orm: string;
  /** Whether an answer may come before its transaction is on disk. */
  isDurable?: boolean;
  software: Record<string, string>;
}

/** What a started server runs on, e.g. its database. */
export interface Backing {
  environment: Record<string, string>;
  /**
   * Processes beside the RPC server whose CPU counts, e.g. the database server; null if it is remote. Read anew each
   * time: after a crash they are others.
   */
  readonly processes: number[] | null;
  dataDirectory?: string;
  /** Kills the database without warning and starts it again on the same data. */
  crash?(): Promise<void>;
  stop(): Promise<void>;
}

export interface RpcDefinitionOptions {
  key: string;
  /** File below src/rpc-servers, or another one relative to the package. */
  serverFile: string;
  /** `SQLITE_RPC_URL`, say: a server that runs already; it is used as it is. */
  urlVariable: string;
  /** Where such a server usually is; without it, one is started each time. */
  defaultUrl: string | undefined;
  /** Where a flag may name that server as well. */
  urlOfFlag?: ((config: Config) => string) | undefined;
  startCommand: string;
  systemClass?: Fairness["systemClass"];
  transport?: string;
  /** The program and its arguments before the file; Node with tsx if left out. */
  runtime?: () => { command: string; args: string[] };
  /** The variable that the server takes its port from. */
  portVariable: string;
  back(context: PrepareContext): Promise<Backing>;
  connector?: Partial<RpcConnectorOptions>;
  create?: (config: Config, url: string) => ReturnType<ConnectorDefinition["create"]>;
  /** How the native load generator calls; by `POST /rpc` if left out. */
  nativeKind?: NativeTarget["kind"];
}

const nodeRuntime = () => ({ command: process.execPath, args: ["--import", "tsx"] });

export function rpcDefinition(options: RpcDefinitionOptions): ConnectorDefinition {
  const { key, startCommand } = options;
  const connect = (config: Config, url: string) =>
    options.create?.(config, url) ??
    new RpcConnector({ name: key, url, initialBalance: config.initialBalance, ...options.connector });

  return {
    key,
    startCommand,
    create: (config, prepared) => connect(config, prepared.url),
    nativeTarget: (_, { url }) => ({ kind: options.nativeKind ?? "rpc", url }),
    prepare: async (context) => {
      const { config, say } = context;
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
      const started = isFound ? await found(url, say, key, startCommand) : await start(options, context);
      const root = new RpcConnector({ name: key, url: started.url, initialBalance: config.initialBalance });
      const reseed = async () => {
        say(`seeding ${config.accounts} accounts`);
        await root.call("seed", { accounts: config.accounts, initialBalance: config.initialBalance });
      };
      try {
        if (config.prep && context.test === "test-1") await reseed();
        const description = await describe(root, config);
        const prepared: Prepared = {
          url: started.url,
          fairness: {
            systemClass:
              description.isDurable === false ? "not-durable" : (options.systemClass ?? "full-stack"),
            isolation: description.isolation,
            durability: description.durability,
            poolMax: description.poolMax,
            transport: options.transport ?? httpTransport(),
            orm: description.orm,
            clientLanguage: "TypeScript",
            colocated: started.processes() !== null,
            roundTripsPerTx: description.roundTripsPerTx,
          },
          // Read anew each time: after a crash the database is another process.
          get serverProcesses() {
            return started.processes();
          },
          software: description.software,
          reseed,
          stop: started.stop,
          ...(started.dataDirectory !== undefined && { dataDirectory: started.dataDirectory }),
          ...(started.crash && { crash: started.crash }),
        };
        return prepared;
      } catch (error) {
        await started.stop();
        throw error;
      }
    },
  };
}

interface Started {
  url: string;
  processes: () => number[] | null;
  dataDirectory?: string;
  crash?: () => Promise<void>;
  stop(): Promise<void>;
}

async function start(options: RpcDefinitionOptions, context: PrepareContext): Promise<Started> {
  const { config, processes, say, workDirectory } = context;
  const backing = await options.back(context);
  try {
    say(`starting ${options.serverFile}`);
    const runtime = options.runtime?.() ?? nodeRuntime();
    const program = await processes.start({
      name: options.serverFile,
      command: runtime.command,
      args: [...runtime.args, join(packageDirectory, options.serverFile)],
      workingDirectory: packageDirectory,
      environment: {
        SEED_ACCOUNTS: String(config.accounts),
        SEED_INITIAL_BALANCE: String(config.initialBalance),
        MAX_POOL: String(config.poolMax),
        [options.portVariable]:
          context.asService && options.defaultUrl !== undefined ? new URL(options.defaultUrl).port : "0",
        ...backing.environment,
      },
      logFile: join(workDirectory, `${options.key}.log`),
      readyWhen: /listening on (http:\/\/[0-9.:]+)/,
    });
    return {
      url: program.ready,
      processes: () => {
        const behind = backing.processes;
        return behind === null ? null : [program.pid, ...behind];
      },
      ...(backing.dataDirectory !== undefined && { dataDirectory: backing.dataDirectory }),
      ...(backing.crash && { crash: backing.crash }),
      stop: async () => {
        await program.stop();
        await backing.stop();
      },
    };
  } catch (error) {
    await backing.stop();
    throw error;
  }
}

async function found(
  url: string,
  say: (line: string) => void,
  key: string,
  startCommand: string,
): Promise<Started> {
  if (!(await isHealthy(url))) throw new NotRunning(`no server at ${url}: start it with \`${startCommand}\``);
  say(`${key}: using the server at ${url}`);
  const { hostname, port } = new URL(url);
  const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(hostname);
  const pids = isLocal ? processesListeningOn(Number(port || "80")) : null;
  return {
    url,
    processes: () => pids,
    stop: async () => {},
  };
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

async function describe(root: RpcConnector, config: Config): Promise<RpcDescription> {
  try {
    return (await root.call("describe")) as RpcDescription;
  } catch {
    // A server of another suite: it does not say.
    const unknown = "unknown";
    return {
      isolation: unknown,
      durability: unknown,
      poolMax: config.poolMax,
      roundTripsPerTx: 0,
      orm: unknown,
      software: {},
    };
  }
}
