import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { hex, hostError, Module, type Sdk, type SysFunctions } from "./host";

// Hook calls of docs/interface/vectors/04-calls.json, with the host calls that follow.

const folder = new URL("../../../docs/interface/vectors/", import.meta.url);

export const vectors = <Shape>(name: string): Shape =>
  JSON.parse(readFileSync(new URL(name, folder), "utf8")) as Shape;

export interface ModuleVector {
  name: string;
  source: string[];
  exports: Record<string, string[]>;
  /** Ids of tables and indexes, where the calls show them. */
  ids?: Record<string, number>;
}

interface Thrown {
  class?: string;
  message?: string;
  user_error?: boolean;
  errno?: number;
  __buffer_too_small__?: number;
}

export interface HostCall {
  function: string;
  args: unknown[];
  returns?: unknown;
  reads?: string;
  writes?: string;
  throws?: Thrown;
}

export interface CallVector {
  name: string;
  module: string;
  hook: string;
  args: unknown[];
  returns?: unknown;
  throws?: Thrown;
  host_calls: HostCall[];
}

const fromHex = (text: string) => Uint8Array.from(Buffer.from(text, "hex"));

const ANY = "a buffer";

/** Buffers are of the module's context, not of this one: they are no instances of this one's class. */
const isBuffer = (value: unknown): value is ArrayBuffer =>
  typeof value === "object" && value !== null && "byteLength" in value && !ArrayBuffer.isView(value);

/** What the file writes for a value: BigInts, bytes and buffers have a form of their own. */
function shown(value: unknown): unknown {
  if (typeof value === "bigint") return `${value}n`;
  if (ArrayBuffer.isView(value)) return { bytes: hex(value) };
  if (isBuffer(value)) return { buffer: value.byteLength };
  return value;
}

/** The value that the file means by its form. */
function valueOf(form: unknown): unknown {
  if (Array.isArray(form)) return form.map(valueOf);
  if (typeof form === "string") return /^-?\d+n$/.test(form) ? BigInt(form.slice(0, -1)) : fromHex(form);
  if (form === null || typeof form !== "object") return form;
  if ("bytes" in form) return fromHex(form.bytes as string);
  const bytes = fromHex((form as { data_view: string }).data_view);
  const buffer = new ArrayBuffer(4096);
  new Uint8Array(buffer).set(bytes);
  return new DataView(buffer, 0, bytes.length);
}

/** Loads a module, makes a call, and compares everything that the host sees. */
export async function replay(module: ModuleVector, call: CallVector, sdk: Sdk): Promise<void> {
  const expected = [...call.host_calls];
  let loaded: Module;
  const answer = (name: string, args: unknown[]): unknown => {
    // Ids are looked up in the first call, which is the only one where the file shows it.
    const isLookup = name.endsWith("_id_from_name") && expected[0]?.function !== name;
    if (isLookup) return module.ids?.[args[0] as string] ?? 4096;
    const next = expected.shift();
    // A buffer that the host reads may have any size: its filled length is an argument of its own.
    const form = (arg: unknown) =>
      isBuffer(arg) && sdk === "ours" && next?.reads !== undefined ? ANY : shown(arg);
    const wanted = next?.args.map((arg, index) => (form(args[index]) === ANY ? ANY : arg));
    expect({ function: name, args: args.map(form) }).toEqual({ function: next?.function, args: wanted });
    return answerOf(next!, args, loaded);
  };
  const functions: SysFunctions = new Proxy(
    {},
    {
      get:
        (_, name: string) =>
        (...args: unknown[]) =>
          answer(name, args),
      ownKeys: () => [],
    },
  );
  loaded = await Module.load(module.source.join("\n"), sdk, functions);
  const outcome = () => loaded.hooks[call.hook](...call.args.map(valueOf));
  if (call.throws) expectThrown(outcome, call.throws, loaded);
  else expectReturned(outcome(), call.returns);
  expect(expected).toEqual([]);
}

function answerOf(call: HostCall, args: unknown[], module: Module): unknown {
  const buffer = args.find(isBuffer);
  if (call.reads !== undefined) {
    expect(hex(new Uint8Array(buffer as ArrayBuffer, 0, call.reads.length / 2))).toBe(call.reads);
  }
  if (call.throws) throw errorOf(call.throws, module);
  if (call.writes !== undefined) new Uint8Array(buffer as ArrayBuffer).set(fromHex(call.writes));
  return valueOf(call.returns);
}

function errorOf(thrown: Thrown, module: Module): unknown {
  if (thrown.__buffer_too_small__ !== undefined) return thrown;
  if (thrown.errno !== undefined) return hostError(module, thrown.errno, thrown.message!);
  return new Error(thrown.message);
}

function expectThrown(outcome: () => unknown, thrown: Thrown, module: Module): void {
  let error: any;
  try {
    outcome();
  } catch (caught) {
    error = caught;
  }
  expect(error?.name).toBe(thrown.class);
  if (thrown.message !== undefined) expect(error.message).toBe(thrown.message);
  const isUserError = error instanceof module.hooks.__sender_error_class__;
  expect(isUserError).toBe(thrown.user_error ?? false);
}

function expectReturned(returned: any, expected: any): void {
  if (expected === null) expect(returned).toBeUndefined();
  else if (typeof expected === "string") expect(hex(returned)).toBe(expected);
  else if (Array.isArray(expected)) expect(returned.map(hex)).toEqual(expected);
  else expect(hex(returned.data)).toBe(expected.data);
}
