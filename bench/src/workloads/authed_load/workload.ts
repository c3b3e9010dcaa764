// authed-load (section 19): users with an authenticated connection each read, create, change and delete notes.

import { type Config, unlessGiven } from "../../config";
import { fmix32, kindOf, type Mix, mixOf, rng32, workerSeed } from "../random";
import type { Engine, Operation, Outcome, Verdict, Workload, WorkloadRun } from "../workload";

const defaultUsers = 50;
const defaultSeconds = 60;
const defaultWarmupSec = 10;
const defaultPoolMax = 30;
const pageNotes = 20;
const seededNotes = 1_000;
/** Notes that each user has before it begins, so that there is something to change. */
const notesPerUser = 20;

export type Kind = "read" | "create" | "update" | "delete";

export const scenarios: Record<string, Mix<Kind>> = {
  mixed: mixOf({ read: 0.8, create: 0.1, update: 0.05, delete: 0.05 }),
  "read-only": mixOf({ read: 1 }),
  "write-only": mixOf({ create: 1 }),
  mutate: mixOf({ update: 0.5, delete: 0.5 }),
};

/** What the users of one run share. */
interface Notes {
  /** By user. */
  own: number[][];
  acknowledgedWrites: number;
}

/** One draw for the kind; what is changed comes from a source of its own. */
export function userGenerator(mix: Mix<Kind>, notes: Notes, user: number, seed: number, isHotRow: boolean) {
  const kinds = rng32(workerSeed(seed, user));
  const targets = rng32(fmix32(workerSeed(seed, user)));
  let created = 0;
  const target = () => {
    const own = notes.own[user] ?? [];
    // The published runs changed one row that all users share.
    if (isHotRow) return notes.own[0]![0]!;
    return own[Math.floor(targets.unit() * own.length)]!;
  };
  return {
    next(): Operation {
      const kind = kindOf(mix, kinds.unit());
      if (kind === "read") return { kind, args: { limit: pageNotes } };
      if (kind === "create") return { kind, args: { title: `note ${created++} of user ${user}` } };
      const id = target();
      return { kind, args: kind === "update" ? { id, title: "changed" } : { id } };
    },
    ended(operation: Operation, outcome: Outcome | undefined): void {
      if (!outcome || operation.kind === "read") return;
      notes.acknowledgedWrites++;
      if (operation.kind === "create") notes.own[user]!.push(Number(outcome.found));
    },
  };
}

function createRun(config: Config, scenario: string): WorkloadRun {
  const seconds = unlessGiven(config, "seconds", defaultSeconds);
  const isOwnLength = config.given?.has("seconds") ?? false;
  const warmupSec = isOwnLength ? config.warmupSec : unlessGiven(config, "warmupSec", defaultWarmupSec);
  const users = unlessGiven(config, "concurrency", defaultUsers);
  const mix = scenarios[scenario]!;
  const notes: Notes = { own: [], acknowledgedWrites: 0 };
  let eventsBefore = 0;
  return {
    parameters: { scenario, seconds, ...(config.hotRow && { "hot row": true }) },
    limit: { mode: "time", seconds, warmupSec },
    concurrency: users,
    load: async ({ run }) => {
      const start = performance.now();
      await run("seed", { notes: seededNotes });
      for (let user = 0; user < users; user++) {
        const own: number[] = [];
        for (let note = 0; note < notesPerUser; note++) {
          own.push(Number((await run("create", { title: `first ${note} of user ${user}` })).found));
        }
        notes.own.push(own);
      }
      eventsBefore = Number((await run("events")).found);
      const seconds = (performance.now() - start) / 1000;
      const rows = seededNotes + users * notesPerUser;
      return { rows, seconds, rows_per_s: rows / seconds };
    },
    generator: (user) => userGenerator(mix, notes, user, config.benchSeed, config.hotRow),
    verify: async ({ run }, measurement): Promise<Verdict> => {
      const events = Number((await run("events")).found) - eventsBefore;
      const least = notes.acknowledgedWrites;
      const most = least + unknownWrites(measurement);
      return {
        ok: events >= least && events <= most,
        message: `${events} entries of the log for ${least} acknowledged writes${most > least ? ` and ${most - least} of unknown outcome` : ""}`,
      };
    },
  };
}

/** Writes that failed: they may have happened. */
function unknownWrites(measurement: Engine): number {
  return (["create", "update", "delete"] as const).reduce(
    (sum, kind) => sum + (measurement.kinds.get(kind)?.errors ?? 0),
    0,
  );
}

export const authedLoadWorkload: Workload = {
  name: "authed-load",
  samples: 1,
  settings: (config) => ({ poolMax: unlessGiven(config, "poolMax", defaultPoolMax) }),
  runs: (config) =>
    Object.keys(scenarios).map((scenario) => ({
      label: scenario,
      create: () => createRun(config, scenario),
    })),
};
