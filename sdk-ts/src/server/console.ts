import { inspect } from "./inspect";
import { sys } from "./sys";

const ERROR = 0;
const WARN = 1;
const INFO = 2;
const DEBUG = 3;
const TRACE = 4;

const timers = new Map<string, number>();

function text(values: readonly unknown[]): string {
  return values.map((value) => (typeof value === "string" ? value : inspect(value))).join(" ");
}

function nothing(): void {}

// Each method calls the host itself: a log record names the place that called the method, which is the second frame.

/** `console` of a module: writes to the log of the database (spec 04 §9). */
export const console: Console = {
  assert(condition?: boolean, ...data: unknown[]) {
    if (!condition) sys.console_log(ERROR, text(data));
  },
  clear: nothing,
  debug(...data: unknown[]) {
    sys.console_log(DEBUG, text(data));
  },
  error(...data: unknown[]) {
    sys.console_log(ERROR, text(data));
  },
  info(...data: unknown[]) {
    sys.console_log(INFO, text(data));
  },
  log(...data: unknown[]) {
    sys.console_log(INFO, text(data));
  },
  table(data: unknown) {
    sys.console_log(INFO, text([data]));
  },
  trace(...data: unknown[]) {
    sys.console_log(TRACE, text(data));
  },
  warn(...data: unknown[]) {
    sys.console_log(WARN, text(data));
  },
  dir: nothing,
  dirxml: nothing,
  count: nothing,
  countReset: nothing,
  group: nothing,
  groupCollapsed: nothing,
  groupEnd: nothing,
  time(label = "default") {
    if (timers.has(label)) {
      sys.console_log(WARN, `Timer '${label}' already exists.`);
      return;
    }
    timers.set(label, sys.console_timer_start(label));
  },
  timeLog(label = "default", ...data: unknown[]) {
    sys.console_log(INFO, text([label, ...data]));
  },
  timeEnd(label = "default") {
    const timer = timers.get(label);
    if (timer === undefined) {
      sys.console_log(WARN, `Timer '${label}' does not exist.`);
      return;
    }
    timers.delete(label);
    sys.console_timer_end(timer);
  },
  timeStamp: nothing,
  profile: nothing,
  profileEnd: nothing,
} as unknown as Console;

/** Makes this the console of the module, and the names by which libraries look for the global object. */
export function installGlobals(): void {
  const scope = globalThis as any;
  scope.console = console;
  scope.global ??= scope;
  scope.window ??= scope;
}

/** The host ends the timers of a call with it. */
export function forgetTimers(): void {
  if (timers.size > 0) timers.clear();
}
