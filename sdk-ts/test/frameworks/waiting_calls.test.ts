// Calls that wait for the first connection of a provider.

import { expect, test } from "vitest";
import { WaitingCalls } from "../../src/session/waiting_calls";
import { reducers } from "../client/bindings";

test("ten thousand calls wait, and the next one is rejected", async () => {
  const calls = new WaitingCalls();
  const tick = calls.to("reducers", reducers.tick, () => undefined);
  const waiting = Array.from({ length: 10_000 }, () => tick());
  await expect(tick()).rejects.toMatchObject({ code: "LC0835" });
  const connection = { reducers: { tick: async () => "called" } };
  calls.use(connection as never);
  expect(new Set(await Promise.all(waiting))).toEqual(new Set(["called"]));
  expect(await tick()).toBe("called");
});
