// What a system with RPC methods says of itself, as every preparation hands it on.

import type { Config } from "../config";
import type { SystemClass } from "../core/result";
import type { Started } from "../init/backing";
import type { Connector } from "./connector";
import { fairnessOf, type PrepareContext, type Prepared } from "./definition";

/** The answer to the method `describe`, read from the database that is used. */
interface Description {
  isolation: string;
  durability: string;
  poolMax: number | null;
  roundTripsPerTx: number;
  orm: string;
  /** Whether an answer may come before its transaction is on disk. */
  isDurable?: boolean;
  software: Record<string, string>;
}

async function descriptionOf(root: Connector, config: Config): Promise<Description> {
  try {
    return (await root.call("describe")) as Description;
  } catch {
    // A server of another suite: it does not say.
    const unknown = "unknown";
    const { poolMax } = config;
    return {
      isolation: unknown,
      durability: unknown,
      poolMax,
      roundTripsPerTx: 0,
      orm: unknown,
      software: {},
    };
  }
}

/** Asks a system that runs for what results say of it; seeds it where test-1 is going to run. */
export async function preparedFrom(
  { config, say, test }: PrepareContext,
  started: Started,
  root: Connector,
  columns: { systemClass: SystemClass; transport: string },
): Promise<Prepared> {
  const reseed = async () => {
    say(`seeding ${config.accounts} accounts`);
    await root.call("seed", { accounts: config.accounts, initialBalance: config.initialBalance });
  };
  try {
    if (config.prep && test === "test-1") await reseed();
    const { isolation, durability, poolMax, roundTripsPerTx, orm, isDurable, software } = await descriptionOf(
      root,
      config,
    );
    return {
      url: started.url,
      fairness: fairnessOf({
        ...{ isolation, durability, poolMax, roundTripsPerTx, orm },
        ...columns,
        ...(isDurable === false && { systemClass: "not-durable" as const }),
        colocated: started.processes() !== null,
      }),
      // Read anew each time: after a crash the database is another process.
      get serverProcesses() {
        return started.processes();
      },
      software,
      reseed,
      stop: started.stop,
      ...(started.dataDirectory !== undefined && { dataDirectory: started.dataDirectory }),
      ...(started.crash && { crash: started.crash }),
    };
  } catch (error) {
    await started.stop();
    throw error;
  }
}
