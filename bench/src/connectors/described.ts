// What a system with RPC methods says of itself, as every preparation hands it on.

import type { Config } from "../config";
import type { Fairness } from "../core/result";
import { orStopped } from "../init/processes";
import type { Connector } from "./connector";
import { fairnessOf, type PrepareContext, type Prepared, type Started } from "./definition";

/** The answer to the method `describe`, read from the database that is used. */
export interface Description {
  isolation: string;
  durability: string;
  poolMax: number | null;
  roundTripsPerTx?: number;
  orm?: string;
  /** Whether an answer may come before its transaction is on disk. */
  isDurable?: boolean;
  software: Record<string, string>;
  /** What a person must know before the first run. */
  warnings?: string[];
}

export const descriptionBy = async (root: Connector) => (await root.call("describe")) as Description;

/** A server of another suite does not say. */
export function unknownDescription({ poolMax }: Config): Description {
  const unknown = "unknown";
  return {
    ...{ isolation: unknown, durability: unknown, orm: unknown },
    ...{ poolMax, roundTripsPerTx: 0, software: {} },
  };
}

/** Asks a system that runs for what results say of it; seeds it where test-1 is going to run. */
export async function preparedFrom(
  { config, say, test }: PrepareContext,
  started: Started,
  root: Connector,
  columns: Pick<Fairness, "systemClass" | "transport"> & Partial<Fairness>,
  describe: () => Promise<Description> = () => descriptionBy(root),
): Promise<Prepared> {
  const reseed = async () => {
    say(`seeding ${config.accounts} accounts`);
    await root.call("seed", { accounts: config.accounts, initialBalance: config.initialBalance });
  };
  return orStopped(started, async () => {
    if (config.prep && test === "test-1") await reseed();
    const { isDurable, software, warnings = [], ...described } = await describe();
    for (const warning of warnings) say(`warning: ${warning}`);
    const { isolation, durability, poolMax, roundTripsPerTx = 1, orm = "none" } = described;
    const fairness = fairnessOf({
      ...{ isolation, durability, poolMax, roundTripsPerTx, orm },
      colocated: started.processes() !== null,
      ...columns,
      ...(isDurable === false && { systemClass: "not-durable" as const }),
    });
    return { ...started, fairness, software, reseed };
  });
}
