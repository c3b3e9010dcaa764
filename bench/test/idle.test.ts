// A run starts only on an idle machine (section 12).

import { describe, expect, it } from "vitest";
import { MachineBusy, untilIdle } from "../src/core/idle";
import { VirtualClock } from "./support/virtual_clock";

function machine(loadAt: (milliseconds: number) => number, isForced = false) {
  const clock = new VirtualClock();
  const start = clock.now();
  const said: string[] = [];
  const waited = clock.run(
    untilIdle({
      isForced,
      hardwareThreads: 16,
      say: (line) => said.push(line),
      load: () => loadAt(clock.now() - start),
      clock,
    }),
  );
  return { waited, said, elapsed: () => clock.now() - start };
}

describe("a run", () => {
  it("starts at once below a tenth of the threads", async () => {
    const { waited, said, elapsed } = machine(() => 1.59);
    await waited;
    expect(said).toEqual([]);
    expect(elapsed()).toBe(0);
  });

  it("waits until what was built before has left the average", async () => {
    const { waited, said, elapsed } = machine((milliseconds) => (milliseconds < 100_000 ? 1.6 : 1.5));
    await waited;
    expect(said).toEqual([
      "the load average is 1.60, and should be below 1.60: waiting up to 180 s; --force starts at once",
    ]);
    expect(elapsed()).toBe(100_000);
  });

  it("is refused on a machine that stays busy", async () => {
    const { waited, elapsed } = machine(() => 2);
    await expect(waited).rejects.toThrow(MachineBusy);
    await expect(waited).rejects.toThrow("the load average is 2.00, and should be below 1.60");
    await expect(waited).rejects.toThrow("--force");
    expect(elapsed()).toBe(180_000);
  });

  it("starts at once when it is forced, with a warning", async () => {
    const { waited, said, elapsed } = machine(() => 2, true);
    await waited;
    expect(said).toEqual([expect.stringContaining("warning: the load average is 2.00")]);
    expect(elapsed()).toBe(0);
  });
});
