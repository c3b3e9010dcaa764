import * as sys20 from "spacetime:sys@2.0";
import * as sys21 from "spacetime:sys@2.1";
import { type NativeText, preferNativeText } from "../core/utf8";

/** The functions of the host (spec 04 §4.2). */
export const sys = { ...sys20, ...sys21 };
export { moduleHooks } from "spacetime:sys@2.0";

/** Functions that a Lightcone host adds: docs/js-abi.md. */
export interface FastSys extends Partial<NativeText> {
  readonly version: number;
  /** Reads all rows with a key into the buffer that held it; 0 = none, negative = so many bytes are needed. */
  point_read?(index: number, buffer: ArrayBuffer, keyLength: number): number;
  row_update?(table: number, index: number, buffer: ArrayBuffer, rowLength: number): number;
  readonly callBuffer?: ArrayBuffer;
}

/** The functions that this host adds to the standard ones, if any. */
export function fastSys(): FastSys | undefined {
  const fast: unknown = Reflect.get(globalThis, Symbol.for("lightcone.sys.1"));
  return typeof fast === "object" && fast !== null ? (fast as FastSys) : undefined;
}

const { text_read, text_write } = fastSys() ?? {};
if (text_read && text_write) preferNativeText({ text_read, text_write });
