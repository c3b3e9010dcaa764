// The client's messages on the console.

/** The importance of a line. */
export type LogLevel = "info" | "warn" | "error" | "debug" | "trace";

/** From the most important one to the least. */
const LEVELS: readonly LogLevel[] = ["error", "warn", "info", "debug", "trace"];

let globalLevel: LogLevel = "info";

/** Messages below this level are dropped. The default is `info`. */
export const setGlobalLogLevel = (level: LogLevel): void => {
  globalLevel = level;
};

/** The level that was set. */
export const getGlobalLogLevel = (): LogLevel => globalLevel;

type Lazy<T> = T | (() => T);

/** JSON text of any value; integers above 2^53 become strings. */
export const stringify = (value: unknown): string | undefined =>
  JSON.stringify(value, (_key, part: unknown) => (typeof part === "bigint" ? part.toString() : part));

const evaluate = <T>(value: Lazy<T>): T => (typeof value === "function" ? (value as () => T)() : value);

/** Writes a line; a function is only called when its level is shown. */
export const stdbLogger = (level: LogLevel, message: Lazy<any>, ...args: Lazy<any>[]): void => {
  if (LEVELS.indexOf(level) > LEVELS.indexOf(globalLevel)) return;
  console[level](`[lightcone] ${String(evaluate(message))}`, ...args.map(evaluate));
};
