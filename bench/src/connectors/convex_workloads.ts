// The other tests on Convex: the names of the RPC methods are those of its functions, but what touches a whole table takes
// several calls, since a function may read and write only so much.

import type { CallArguments } from "./connector";

export type CallFunction = (path: string, args: CallArguments) => Promise<unknown>;

/** Of all functions, those that change nothing. */
export const workloadQueries: ReadonlySet<string> = new Set([
  ...["ycsb:ycsb_read", "ycsb:ycsb_scan", "ycsb:ycsb_count"],
  "content:content_get",
  "jobs:job_counts",
]);

/** The file that has a function, by the beginning of its name. */
const files: Record<string, string> = { ycsb: "ycsb", content: "content", job: "jobs" };

/** `ycsb:ycsb_read` for `ycsb_read`. */
export function pathOf(name: string): string {
  const file = files[name.split("_")[0]!];
  return name.includes(":") || file === undefined ? name : `${file}:${name}`;
}

/** A function of each test that reads nothing: whether it answers says whether the app is deployed. */
export const probes: { isOf(test: string): boolean; path: string; args: CallArguments }[] = [
  { isOf: (test) => test.startsWith("ycsb"), path: "ycsb:ycsb_read", args: { key: "none" } },
  { isOf: (test) => test === "content-crud", path: "content:content_get", args: { id: "none" } },
  { isOf: (test) => test.startsWith("job"), path: "jobs:job_counts", args: { after: 2 ** 50 } },
  { isOf: () => true, path: "accounts:get_account", args: { id: 0 } },
];

const callsMax = 10_000;
const jobsPerSeed = 4_000;

async function clear(call: CallFunction, path: string): Promise<void> {
  for (let calls = 0; calls < callsMax; calls++) if (Number(await call(path, {})) === 0) return;
  throw new Error(`convex: ${path} has not finished after ${callsMax} calls`);
}

interface Page {
  count: number;
  last: string | number;
}

/** All pages of a function that answers one behind another. */
async function pages<Found extends Page>(
  call: CallFunction,
  path: string,
  start: string | number,
): Promise<Found[]> {
  const found: Found[] = [];
  for (let after = start; found.length < callsMax; after = found.at(-1)!.last) {
    const page = (await call(path, { after })) as Found;
    if (page.count === 0) return found;
    found.push(page);
  }
  throw new Error(`convex: ${path} has not finished after ${callsMax} calls`);
}

const jobPages = (call: CallFunction) =>
  pages<Page & { counts: number[]; repeated: number }>(call, "jobs:job_counts", 0);

const many: Record<string, (call: CallFunction, args: CallArguments) => Promise<unknown>> = {
  ycsb_clear: (call) => clear(call, "ycsb:ycsb_clear"),
  async ycsb_count(call) {
    return (await pages(call, "ycsb:ycsb_count", "")).reduce((sum, { count }) => sum + count, 0);
  },
  content_clear: (call) => clear(call, "content:content_clear"),
  async job_seed(call, args) {
    await clear(call, "jobs:job_clear");
    const jobs = Number(args["n"]);
    for (let first = 1; first <= jobs; first += jobsPerSeed)
      await call("jobs:job_seed", { first, count: Math.min(jobsPerSeed, jobs - first + 1) });
  },
  async job_counts(call) {
    const counted = (await jobPages(call)).map(({ counts }) => counts);
    return [0, 1, 2, 3].map((state) => counted.reduce((sum, counts) => sum + counts[state]!, 0));
  },
  async job_repeated(call) {
    return (await jobPages(call)).reduce((sum, { repeated }) => sum + repeated, 0);
  },
};

/** Calls a method by its RPC name, or a function by its path. */
export function callWorkload(call: CallFunction, name: string, args: CallArguments): Promise<unknown> {
  const several = Object.hasOwn(many, name) ? many[name] : undefined;
  return several ? several(call, args) : call(pathOf(name), args);
}
