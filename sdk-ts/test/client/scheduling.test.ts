// Long work is interrupted, short work is not, and jobs never mix.

import { expect, test } from "vitest";
import { JobQueue, type Steps } from "../../src/client/scheduling";
import { settle } from "./fake_server";

test("a short job is done when add returns", () => {
  const done: string[] = [];
  const queue = new JobQueue();
  queue.add(
    (function* (): Steps {
      done.push("a");
      yield;
      done.push("b");
    })(),
  );
  expect(done).toEqual(["a", "b"]);
});

test("a long job gives way to other tasks, and the next job waits for it", async () => {
  const log: string[] = [];
  const queue = new JobQueue();
  queue.add(
    (function* (): Steps {
      for (let i = 0; i < 10; i++) {
        const end = performance.now() + 5;
        while (performance.now() < end);
        yield;
      }
      log.push("long");
    })(),
  );
  queue.add(
    (function* (): Steps {
      log.push("short");
      yield;
    })(),
  );
  expect(log).toEqual([]);
  setTimeout(() => log.push("timer"));
  while (log.length < 3) await settle();
  expect(log).toEqual(["timer", "long", "short"]);
});

test("a job added by a running job runs after it", () => {
  const log: number[] = [];
  const queue = new JobQueue();
  queue.add(
    (function* (): Steps {
      queue.add(
        (function* (): Steps {
          log.push(2);
          yield;
        })(),
      );
      yield;
      log.push(1);
    })(),
  );
  expect(log).toEqual([1, 2]);
});

test("clear forgets what waits, also from within a job; later jobs run", async () => {
  const log: string[] = [];
  const queue = new JobQueue();
  queue.add(
    (function* (): Steps {
      log.push("first");
      queue.clear();
      queue.add(
        (function* (): Steps {
          log.push("after");
          yield;
        })(),
      );
      yield;
      log.push("never");
    })(),
  );
  await settle();
  expect(log).toEqual(["first", "after"]);
  queue.add(
    (function* (): Steps {
      log.push("later");
      yield;
    })(),
  );
  expect(log).toEqual(["first", "after", "later"]);
});

test("a job that throws does not block the queue", async () => {
  const log: string[] = [];
  const queue = new JobQueue();
  const broken = function* (): Steps {
    yield;
    throw new Error("broken");
  };
  expect(() => queue.add(broken())).toThrow("broken");
  queue.add(
    (function* (): Steps {
      log.push("next");
      yield;
    })(),
  );
  await settle();
  expect(log).toEqual(["next"]);
});
