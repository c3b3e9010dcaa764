// Long work is interrupted, short work is not, and jobs never mix.

import { expect, test } from "vitest";
import { INBOUND_BYTES_MAX, JobQueue, type Steps } from "../../src/client/scheduling";
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

/** A job that outlasts a slice, so that those behind it wait. */
function* longJob(isDone: () => boolean = () => true): Steps {
  const end = performance.now() + 20;
  do {
    while (performance.now() < end);
    yield;
  } while (!isDone());
}

test("what a waiting job costs does not depend on how many wait", async () => {
  const jobs = 100_000;
  let done = 0;
  const queue = new JobQueue();
  queue.add(longJob());
  const before = process.cpuUsage();
  for (let i = 0; i < jobs; i++) {
    queue.add(
      // biome-ignore lint/correctness/useYield: it is done at once
      (function* (): Steps {
        done += 1;
      })(),
    );
  }
  expect(done).toBe(0);
  while (done < jobs) await settle();
  // Some 100 ms of CPU; taking each job off the front of an array took several seconds.
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(1500);
});

test("jobs beyond the bound are not kept: they are done while the next one is added, and in their order", async () => {
  const size = INBOUND_BYTES_MAX / 8;
  const log: number[] = [];
  const queue = new JobQueue();
  let isLongJobDone = false;
  queue.add(longJob(() => isLongJobDone));
  isLongJobDone = true;
  const add = (i: number): void =>
    queue.add(
      (function* (): Steps {
        yield;
        log.push(i);
      })(),
      size,
    );
  let i = 0;
  while (log.length === 0 && i < 20) add(i++);
  expect(i).toBe(8);
  // Half of the bound may wait again.
  expect(log).toEqual([0, 1, 2, 3]);
  while (log.length < 8) await settle();
  expect(log).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});
