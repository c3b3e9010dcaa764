// authed-load: its generator, its tokens, and a short run with a server that checks them.

import { describe, expect, it } from "vitest";
import { signToken, verifyToken } from "../src/rpc-servers/bearer";
import { scenarios, userGenerator } from "../src/workloads/authed_load/workload";
import { vectors } from "./support/vectors";
import { benchInTest } from "./support/workload_bench";

interface MixVectors {
  authed_load_mixed: {
    seed: number;
    worker: number;
    kinds: string;
    counts: { draws: number; R: number; C: number; U: number; D: number };
  };
}

const mixed = vectors<MixVectors>("09-workloads.json").authed_load_mixed;

const letters: Record<string, string> = { read: "R", create: "C", update: "U", delete: "D" };

/** A user with one note of its own. */
function generatorOf(scenario: string, isHotRow = false, own = [[1], [2, 3]], user = mixed.worker) {
  const notes = { own, acknowledgedWrites: 0 };
  return userGenerator(scenarios[scenario]!, notes, user, mixed.seed, isHotRow);
}

describe("the generator", () => {
  it("begins with the kinds of the chapter, and has its shares", () => {
    const generator = generatorOf("mixed");
    const counts: Record<string, number> = { R: 0, C: 0, U: 0, D: 0 };
    let first = "";
    const { draws, ...expected } = mixed.counts;
    for (let draw = 0; draw < draws; draw++) {
      const letter = letters[generator.next().kind]!;
      counts[letter]!++;
      if (draw < mixed.kinds.length) first += letter;
    }
    expect(first).toBe(mixed.kinds);
    expect(counts).toEqual(expected);
  });

  it("changes what the user itself has created, or one row of all", () => {
    const targets = (isHotRow: boolean) => {
      const generator = generatorOf("mutate", isHotRow, [[1], [2, 3]], 1);
      return new Set(Array.from({ length: 100 }, () => generator.next().args["id"]));
    };
    expect(targets(false)).toEqual(new Set([2, 3]));
    expect(targets(true)).toEqual(new Set([1]));
  });
});

describe("tokens", () => {
  const now = 1_700_000_000_000;
  const token = signToken("user 1", "secret", now + 1000);

  it("name their user until they expire", () => {
    expect(verifyToken(token, "secret", now)).toBe("user 1");
    expect(verifyToken(token, "secret", now + 2000)).toBeUndefined();
  });

  it("are refused when anything about them is wrong", () => {
    const [head, claims, signature] = token.split(".");
    const others = Buffer.from(JSON.stringify({ sub: "user 2", exp: 9e9 })).toString("base64url");
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "JWT" })).toString("base64url");
    for (const wrong of [
      `${head}.${others}.${signature}`,
      `${none}.${claims}.${signature}`,
      `${head}.${claims}.`,
      `${token}.more`,
      "",
    ]) {
      expect(verifyToken(wrong, "secret", now), wrong).toBeUndefined();
    }
    expect(verifyToken(token, "another", now)).toBeUndefined();
  });
});

describe("bench authed-load", () => {
  it("runs every scenario, and each acknowledged write is in the log", async () => {
    const { code, files } = await benchInTest(
      "authed-load --connectors sqlite_rpc,postgres_rpc --seconds 0.5 --concurrency 3",
    );
    expect(code).toBe(0);
    const rows = files.map(({ results: [entry] }) => `${entry!.system} ${entry!.parameters["scenario"]}`);
    expect(new Set(rows).size).toBe(8);
    for (const file of files) {
      const { res } = file.results[0]!;
      expect(res.samples).toBeGreaterThan(0);
      expect(res).toMatchObject({ errors: 0, invalid: [] });
      expect(res.verify).toMatchObject({ ran: true, ok: true });
    }
  });
});
