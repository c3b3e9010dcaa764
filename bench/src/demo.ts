// `pnpm run demo`: systems side by side in a minute (section 7).

import type { ConnectorDefinition, Prepared } from "./connectors/definition";
import "dotenv/config";
import { createInterface } from "node:readline/promises";
import { type Config, httpUrl } from "./config";
import { NotRunning } from "./connectors/connector";
import { chooseCases, exitCodes } from "./core/bench";
import { timestamp, writeJson } from "./core/results";
import { runOnce } from "./core/runner";
import { accepts } from "./core/tcp";
import { openSession, type Session } from "./init/session";
import { parseCommandLine } from "./opts";
import { runProgram } from "./program";
import { box, DemoDisplay, type DemoResult } from "./report/demo_display";
import { formatInteger } from "./report/format";
import type { TestCase } from "./tests/find";
import { inFlightOf, transferRun } from "./workloads/transfers/workload";

const test = "test-1";
const defaultSystems = ["lightcone", "postgres_rpc", "sqlite_rpc"];

interface ReadySystem {
  testCase: TestCase;
  definition: ConnectorDefinition;
  prepared: Prepared;
}

async function demo(config: Config, session: Session, display: DemoDisplay): Promise<number> {
  const { cases } = chooseCases(config, test);
  const systems = cases.map(({ system }) => system);
  const inFlight = inFlightOf(config);
  const settings = `${config.seconds} s each, ${config.concurrency} connections × ${inFlight ?? 1} in flight, alpha ${config.alphas[0]}`;
  display.print(box(["Transfers between accounts, every one on disk", settings, systems.join(", ")]));

  display.step(1, "Check services");
  const definitions = new Map<string, ConnectorDefinition>();
  for (const { system, definition } of cases) {
    const loaded = await definition();
    definitions.set(system, loaded);
    const port = Number(new URL(loaded.usualUrl?.(config) ?? httpUrl(config.stdbUrl)).port || "80");
    const where = (await accepts("127.0.0.1", port))
      ? `runs on port ${port}`
      : "does not run yet: the next step starts it";
    display.print(`  ${system} ${where}`);
  }

  display.step(2, config.prep ? "Prepare: start, create, seed" : "Prepare: skipped, what runs is used");
  const ready: ReadySystem[] = [];
  try {
    for (const testCase of cases) {
      const definition = definitions.get(testCase.system)!;
      ready.push({ testCase, definition, prepared: await prepare(config, session, display, definition) });
    }
    display.step(3, "Benchmark");
    const results: DemoResult[] = [];
    for (const system of ready) results.push(await measure(config, display, system, inFlight));

    display.step(4, "Results");
    await display.results(results);
    const at = new Date();
    const path = writeJson(config.runsDir, `demo-${timestamp(at)}.json`, {
      timestamp: at.toISOString(),
      config: {
        seconds: config.seconds,
        concurrency: config.concurrency,
        alpha: config.alphas[0],
        accounts: config.accounts,
        maxInflightPerWorker: inFlight ?? 1,
      },
      results,
    });
    display.print(`\nWrote results to ${path}`);
    return results.some(({ tps }) => tps === 0) ? exitCodes.failed : exitCodes.ok;
  } finally {
    for (const { prepared } of ready) await prepared.stop();
  }
}

/** Where a service is not there, a person gets the chance to start it. */
async function prepare(
  config: Config,
  session: Session,
  display: DemoDisplay,
  definition: ConnectorDefinition,
) {
  const attempt = () =>
    display.during(definition.key, (note) =>
      definition.prepare({ ...session.context(config, test), say: note }),
    );
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof NotRunning)) throw error;
    display.print(`    not running: start it with  ${definition.startCommand}`);
    if (!process.stdin.isTTY) throw error;
    const lines = createInterface({ input: process.stdin, output: process.stdout });
    await lines.question("    Enter, when it runs: ");
    lines.close();
    return attempt();
  }
}

async function measure(
  config: Config,
  display: DemoDisplay,
  system: ReadySystem,
  inFlight: number | undefined,
) {
  const { testCase, definition, prepared } = system;
  const name = testCase.system;
  const { concurrency, alphas } = config;
  try {
    const ops = await testCase.ops();
    const res = await display.during(name, (note) =>
      runOnce({
        ...{ config, prepared, ops },
        run: transferRun(config, { alpha: alphas[0]!, concurrency, inFlight }),
        connect: () => definition.create(config, prepared),
        say: () => undefined,
        onPoint: (point) => note(`${formatInteger(point.tps)} TPS after ${Math.round(point.tSec)} s`),
      }),
    );
    for (const reason of res.invalid) display.print(`    invalid: ${reason}`);
    return { system: name, tps: res.invalid.length > 0 ? 0 : Math.round(res.tps) };
  } catch (error) {
    display.print(`    ${error instanceof Error ? error.message : String(error)}`);
    return { system: name, tps: 0 };
  }
}

runProgram(import.meta.filename, async () => {
  const commandLine = parseCommandLine("demo", process.argv.slice(2), process.env);
  if (!commandLine) return exitCodes.ok;
  const config: Config = {
    ...commandLine.config,
    connectors: commandLine.config.connectors ?? defaultSystems,
    prep: commandLine.config.prep && !commandLine.skipPrep,
  };
  return demo(config, openSession(), new DemoDisplay(commandLine.animation));
});
