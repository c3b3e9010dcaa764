// Programs that the suite starts: each in a group of its own, its output in a file, ended with the suite.

import { type ChildProcess, spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { dirname, join } from "node:path";

export interface ProgramOptions {
  /** Short name for messages, e.g. `sqlite rpc server`. */
  name: string;
  command: string;
  args: string[];
  environment?: Record<string, string | undefined>;
  workingDirectory?: string;
  /** Standard output and errors go here. */
  logFile: string;
  /** A line of the output that says that it is ready; the first group, if there is one, is answered as `ready`. */
  readyWhen: RegExp;
  readyWithinMilliseconds?: number;
}

export interface Program {
  name: string;
  pid: number;
  /** What `readyWhen` found: its first group, or all of it. */
  ready: string;
  logFile: string;
  isRunning(): boolean;
  /** Asks it to end, and kills it if it has not after 10 seconds. */
  stop(signal?: NodeJS.Signals): Promise<void>;
  /** Kills it at once. */
  kill(): Promise<void>;
}

/** Much longer than any of them takes, but on a machine that compiles something. */
const readyMilliseconds = 90_000;
const stopMilliseconds = 10_000;

export class ProcessGroup {
  readonly #running = new Set<ChildProcess>();

  /** Starts a program and waits until it says that it is ready. */
  async start(options: ProgramOptions): Promise<Program> {
    mkdirSync(dirname(options.logFile), { recursive: true });
    const log = openSync(options.logFile, "a");
    const logStart = readFileSync(options.logFile).length;
    const [command, ...args] = [...endWithParent(), options.command, ...options.args];
    const child = spawn(command!, args, {
      cwd: options.workingDirectory,
      env: { ...process.env, ...options.environment },
      stdio: ["ignore", log, log],
      // A group of its own: an interrupt at the terminal reaches the suite alone, which then stops it in order.
      detached: true,
    });
    closeSync(log);
    this.#running.add(child);
    let problem: string | undefined;
    child.once("error", (error) => (problem = error.message));
    const ended = new Promise<void>((resolve) => child.once("exit", () => resolve()));
    child.once("exit", (code, signal) => {
      this.#running.delete(child);
      problem ??= `it ended with ${signal ?? code}`;
    });
    const output = () => readFileSync(options.logFile).subarray(logStart).toString("utf8");
    const deadline = Date.now() + (options.readyWithinMilliseconds ?? readyMilliseconds);
    let found: RegExpExecArray | null = null;
    while (!(found = options.readyWhen.exec(output()))) {
      if (problem !== undefined)
        throw new Error(`${options.name} did not start: ${problem}\n${lastLines(output())}`);
      if (Date.now() > deadline) {
        endGroup(child, "SIGKILL");
        throw new Error(`${options.name} did not get ready in time\n${lastLines(output())}`);
      }
      await sleep(20);
    }
    const isRunning = () => child.exitCode === null && child.signalCode === null;
    return {
      name: options.name,
      pid: child.pid!,
      ready: found[1] ?? found[0],
      logFile: options.logFile,
      isRunning,
      stop: async (signal = "SIGTERM") => {
        if (!isRunning()) return;
        endGroup(child, signal);
        const timer = setTimeout(() => endGroup(child, "SIGKILL"), stopMilliseconds);
        await ended;
        clearTimeout(timer);
      },
      kill: async () => {
        if (!isRunning()) return;
        endGroup(child, "SIGKILL");
        await ended;
      },
    };
  }

  /** Kills what is still running; for the end of the process, where nothing can be waited for. */
  killAll(): void {
    for (const child of this.#running) endGroup(child, "SIGKILL");
    this.#running.clear();
  }
}

let wrapper: string[] | undefined;

/** Linux kills what is started with this when the suite is gone, however it went: even after SIGKILL nothing is left. */
function endWithParent(): string[] {
  wrapper ??= existsSync("/usr/bin/setpriv") ? ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--"] : [];
  return wrapper;
}

/** Signals a program that was started detached, with all that it has started. */
export function endGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // It has ended already.
  }
}

/** What is done with something that was started: if it fails, that is stopped. */
export async function orStopped<T>(started: { stop(): Promise<void> }, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (error) {
    await started.stop();
    throw error;
  }
}

export const isAlive = (pid: number | string): boolean => existsSync(`/proc/${pid}`);

/** Removes what killed invocations have left: the names of their directories go on with the process id of their maker. */
export function removeAbandoned(
  parent: string,
  prefix: string,
  isUsed: (directory: string) => boolean = () => false,
): string[] {
  const directories = readdirSync(parent).flatMap((name) => {
    const maker = name.startsWith(prefix) && /^(\d+)-/.exec(name.slice(prefix.length))?.[1];
    return maker && !isAlive(maker) ? [join(parent, name)] : [];
  });
  const abandoned = directories.filter((directory) => !isUsed(directory));
  for (const directory of abandoned) rmSync(directory, { recursive: true, force: true });
  return abandoned;
}

const lastLines = (text: string) => text.trimEnd().split("\n").slice(-20).join("\n");

export const sleep = (milliseconds: number) => new Promise<void>((done) => setTimeout(done, milliseconds));

/** A port that nothing listens on now. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once("error", reject);
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() =>
        address && typeof address === "object" ? resolve(address.port) : reject(new Error("no port")),
      );
    });
  });
}
