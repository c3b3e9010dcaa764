import { SenderError } from "../core/errors";

/** Thrown when the database refuses something; `errors` has a class for each reason. */
export class SpacetimeHostError extends Error {
  // biome-ignore lint/complexity/noUselessConstructor: the message is required here, unlike in Error
  constructor(message: string) {
    super(message);
  }

  override get name(): string {
    return "SpacetimeHostError";
  }
}

/** The class of the errors with one reason. */
interface HostErrorClass<Name extends string> {
  new (message: string): SpacetimeHostError & { readonly name: Name };
  readonly prototype: SpacetimeHostError & { readonly name: Name };
}

function hostError<const Name extends string>(name: Name): HostErrorClass<Name> {
  return class extends SpacetimeHostError {
    override get name(): Name {
      return name;
    }
  };
}

/** Reasons for which the database refuses something (spec 04 §5.1). A module may catch them and go on. */
export const errors = Object.freeze({
  HostCallFailure: /* @__PURE__ */ hostError("HostCallFailure"),
  NotInTransaction: /* @__PURE__ */ hostError("NotInTransaction"),
  BsatnDecodeError: /* @__PURE__ */ hostError("BsatnDecodeError"),
  NoSuchTable: /* @__PURE__ */ hostError("NoSuchTable"),
  NoSuchIndex: /* @__PURE__ */ hostError("NoSuchIndex"),
  NoSuchIter: /* @__PURE__ */ hostError("NoSuchIter"),
  NoSuchConsoleTimer: /* @__PURE__ */ hostError("NoSuchConsoleTimer"),
  NoSuchBytes: /* @__PURE__ */ hostError("NoSuchBytes"),
  NoSpace: /* @__PURE__ */ hostError("NoSpace"),
  BufferTooSmall: /* @__PURE__ */ hostError("BufferTooSmall"),
  UniqueAlreadyExists: /* @__PURE__ */ hostError("UniqueAlreadyExists"),
  ScheduleAtDelayTooLong: /* @__PURE__ */ hostError("ScheduleAtDelayTooLong"),
  IndexNotUnique: /* @__PURE__ */ hostError("IndexNotUnique"),
  NoSuchRow: /* @__PURE__ */ hostError("NoSuchRow"),
  AutoIncOverflow: /* @__PURE__ */ hostError("AutoIncOverflow"),
  WouldBlockTransaction: /* @__PURE__ */ hostError("WouldBlockTransaction"),
  TransactionNotAnonymous: /* @__PURE__ */ hostError("TransactionNotAnonymous"),
  TransactionIsReadOnly: /* @__PURE__ */ hostError("TransactionIsReadOnly"),
  TransactionIsMut: /* @__PURE__ */ hostError("TransactionIsMut"),
  HttpError: /* @__PURE__ */ hostError("HttpError"),
});

const BY_CODE: Record<number, new (message: string) => SpacetimeHostError> = {
  1: errors.HostCallFailure,
  2: errors.NotInTransaction,
  3: errors.BsatnDecodeError,
  4: errors.NoSuchTable,
  5: errors.NoSuchIndex,
  6: errors.NoSuchIter,
  7: errors.NoSuchConsoleTimer,
  8: errors.NoSuchBytes,
  9: errors.NoSpace,
  11: errors.BufferTooSmall,
  12: errors.UniqueAlreadyExists,
  13: errors.ScheduleAtDelayTooLong,
  14: errors.IndexNotUnique,
  15: errors.NoSuchRow,
  16: errors.AutoIncOverflow,
  17: errors.WouldBlockTransaction,
  18: errors.TransactionNotAnonymous,
  19: errors.TransactionIsReadOnly,
  20: errors.TransactionIsMut,
  21: errors.HttpError,
};

/** The class of errors with this number; the common one for numbers without a class. */
export function errorConstructor(code: number): new (message: string) => SpacetimeHostError {
  return BY_CODE[code] ?? SpacetimeHostError;
}

export { SenderError };
