// Every member of the vectors of chapter 09 is read by a test: a new one would be skipped in silence.

import { describe, expect, it } from "vitest";
import { vectors } from "./support/vectors";

/** The members of each file, by the test that reads them. */
const readers: Record<string, Record<string, string[]>> = {
  "09-random.json": {
    "sampler.test.ts": ["mulberry32", "mulberry32_states"],
    "ycsb.test.ts": ["fmix32", "worker_seeds", "loaded_values"],
    "none, as it says": ["xorshift64"],
  },
  "09-sampler.json": {
    "sampler.test.ts": ["accounts", "distributions", "collision_rates", "rejection_sampler_of_the_reference"],
  },
  "09-pairs.json": {
    "sampler.test.ts": ["accounts", "first_ten", "first_million", "all_ten_million", "at", "worker_starts"],
  },
  "09-statistics.json": {
    "sampler.test.ts": ["single_values", "histograms"],
    "statistics.test.ts": ["series"],
  },
  "09-rpc.json": {
    "rpc.test.ts": ["requests", "answers", "binary_frames"],
    "none, as it says": ["request_head_of_node_20"],
  },
  "09-workloads.json": {
    "ycsb.test.ts": ["ycsb_keys", "zipf", "scrambled_zipf", "latest", "ycsb_a"],
    "authed_load.test.ts": ["authed_load_mixed"],
    "content.test.ts": ["ulids"],
  },
  "09-wire.json": {
    "crates/wire/tests": ["client_messages", "client_frames", "server_messages"],
  },
};

describe.each(Object.entries(readers))("%s", (name, members) => {
  it("has the members that are read", () => {
    const { note: _, ...file } = vectors<{ note?: string }>(name);
    expect(Object.keys(file).sort()).toEqual(Object.values(members).flat().sort());
  });

  it("says why a member is read by none", () => {
    const file = vectors<Record<string, { untested?: string }>>(name);
    for (const member of members["none, as it says"] ?? []) expect(file[member]!.untested).toMatch(/\S/);
  });
});
