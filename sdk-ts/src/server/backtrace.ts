/** Traces end above this function: users see their own frames only (spec 04 §9). */
export function __spacetimedb_end_short_backtrace(
  fn: (a: any, b: any) => unknown,
  a: unknown,
  b: unknown,
): unknown {
  return fn(a, b);
}
