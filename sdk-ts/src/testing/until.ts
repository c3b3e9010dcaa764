// Waiting for what another client is about to see.

const PAUSE_MS = 2;

/**
 * Calls `check` again and again until it neither throws nor returns false, and returns what it returned. After `timeoutMs` the last
 * error is thrown.
 *
 * ```ts
 * await until(() => expect(bob.db.message.count()).toBe(1n));
 * ```
 */
export async function until<T>(check: () => T | Promise<T>, timeoutMs = 5_000): Promise<T> {
  const end = Date.now() + timeoutMs;
  for (;;) {
    let failure: unknown;
    try {
      const result = await check();
      if (result !== false) return result;
      failure = new Error(`waited ${timeoutMs} ms in vain until ${check}`);
    } catch (error) {
      failure = error;
    }
    if (Date.now() >= end) throw failure;
    await new Promise((done) => setTimeout(done, PAUSE_MS));
  }
}
