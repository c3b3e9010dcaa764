import { BinaryReader } from "../core/binary_reader";
import { BinaryWriter } from "../core/binary_writer";
import { canGenerateCode } from "../core/codec";
import { tooShort } from "../core/errors";
import type { Timestamp } from "../core/timestamp";
import { __spacetimedb_end_short_backtrace } from "./backtrace";
import { allLevels, databaseView, forChildren, type Level, makeLevel, number } from "./calls";
import { forgetTimers } from "./console";
import { DirectProcedureCtx, DirectReducerCtx } from "./ctx";
import { bufferNames, FixedLayout, fixedSize } from "./fixed_layout";
import type { ProcedureEntry, ReducerEntry, Registry } from "./registry";

/** Where the arguments begin in the buffer of a direct call (docs/js-abi.md). */
const ARGUMENTS_AT = 64;
/** The buffer of results starts with this size; one that grew beyond the second is not kept. */
const RESULT_BYTES_MIN = 4096;
const RESULT_BYTES_KEPT_MAX = 1 << 20;

/**
 * The hooks by which a Lightcone host calls reducers and procedures without making values for what they do not look at
 * (docs/js-abi.md): everything lies in one buffer.
 */
export function makeDirectHooks(registry: Registry, buffer: ArrayBuffer): object {
  const root = makeLevel(registry);
  return {
    __lightcone_call_reducer__: makeReducerHook(root, buffer),
    __lightcone_call_procedure__: makeProcedureHook(root, buffer),
  };
}

function checkEnd(offset: number, argsLength: number): void {
  const end = ARGUMENTS_AT + argsLength;
  if (offset > end) throw tooShort(offset - end, end, 0);
}

/** Makes functions that read the arguments of a reducer or procedure from the buffer. */
function argumentReaders(buffer: ArrayBuffer) {
  const reader = new BinaryReader(new Uint8Array(buffer));
  return (
    { decode, params }: ReducerEntry | ProcedureEntry,
    { registry: { typespace } }: Level,
  ): ((argsLength: number) => unknown) => {
    const size = fixedSize(params, typespace);
    if (size !== undefined && canGenerateCode()) {
      const value = new FixedLayout(typespace).read(params, ARGUMENTS_AT);
      return FixedLayout.function(
        `function(n){if(n<${size})short(${ARGUMENTS_AT + size},n);return ${value}}`,
        {
          ...bufferNames(buffer),
          short: checkEnd,
        },
      );
    }
    return (argsLength) => {
      reader.offset = ARGUMENTS_AT;
      const args = decode(reader);
      checkEnd(reader.offset, argsLength);
      return args;
    };
  };
}

/** Contexts of transactions or reducers, by level; each is made when first asked for. */
function reducerContexts(view: DataView) {
  const contexts: DirectReducerCtx[] = [];
  const byLevel = new Map<Level, DirectReducerCtx>();
  const of = (level: Level): DirectReducerCtx => {
    let context = byLevel.get(level);
    if (context === undefined) {
      context = new DirectReducerCtx(databaseView(level), forChildren(level, of), view);
      byLevel.set(level, context);
      contexts.push(context);
    }
    return context;
  };
  return { contexts, of };
}

function makeReducerHook(root: Level, buffer: ArrayBuffer) {
  const readerOf = argumentReaders(buffer);
  const { contexts, of } = reducerContexts(new DataView(buffer));

  /** Looks up all tables; if that fails, the next call tries again. */
  const prepare = () => {
    databaseView(root);
    return number(root, (r) => r.reducers).map(({ level, entry }) => ({
      fn: entry.fn,
      decode: readerOf(entry, level),
      context: of(level),
    }));
  };
  let ready: ReturnType<typeof prepare> | undefined;

  return (id: number, argsLength: number): undefined => {
    ready ??= prepare();
    const { fn, decode, context } = ready[id]!;
    forgetTimers();
    for (let i = 0; i < contexts.length; i++) contexts[i]!.begin();
    const args = decode(argsLength);
    __spacetimedb_end_short_backtrace(fn, context, args);
  };
}

function makeProcedureHook(root: Level, buffer: ArrayBuffer) {
  const view = new DataView(buffer);
  const readerOf = argumentReaders(buffer);
  const contexts: DirectProcedureCtx[] = [];
  const byLevel = new Map<Level, DirectProcedureCtx>();
  let out = new BinaryWriter(RESULT_BYTES_MIN);

  /** Looks up all tables; if that fails, the next transaction tries again. */
  const prepareTransactions = () => {
    const made = reducerContexts(view);
    for (const level of allLevels(root)) made.of(level);
    return made;
  };
  let transactions: ReturnType<typeof prepareTransactions> | undefined;

  const contextOf = (level: Level): DirectProcedureCtx => {
    let context = byLevel.get(level);
    if (context === undefined) {
      const begin = (timestamp: Timestamp) => {
        transactions ??= prepareTransactions();
        for (const each of transactions.contexts) each.beginTransaction(timestamp);
        return transactions.of(level);
      };
      const randomOf = level === root ? undefined : contextOf(root);
      context = new DirectProcedureCtx(view, begin, forChildren(level, contextOf), randomOf);
      byLevel.set(level, context);
      contexts.push(context);
    }
    return context;
  };

  const ready = number(root, (r) => r.procedures).map(({ level, entry }) => ({
    fn: entry.fn,
    encode: entry.encode,
    decode: readerOf(entry, level),
    context: contextOf(level),
  }));

  return (id: number, argsLength: number): Uint8Array => {
    const { fn, encode, decode, context } = ready[id]!;
    forgetTimers();
    for (let i = 0; i < contexts.length; i++) contexts[i]!.begin();
    const args = decode(argsLength);
    const result = __spacetimedb_end_short_backtrace(fn, context, args);
    if (out.buffer.capacity > RESULT_BYTES_KEPT_MAX) out = new BinaryWriter(RESULT_BYTES_MIN);
    out.clear();
    encode(out, result);
    return out.getBuffer();
  };
}
