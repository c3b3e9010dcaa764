/** Codes of errors that this SDK raises; each has a page in docs/errors/. */
export type LightconeErrorCode = `LC08${number}`;

/** An error of this SDK, with a stable code; the message ends with the code in brackets. */
export class LightconeError extends Error {
  readonly code: LightconeErrorCode;

  constructor(code: LightconeErrorCode, message: string, options?: { cause?: unknown }) {
    super(`${message} [${code}]`, options);
    this.code = code;
  }

  override get name(): string {
    return "LightconeError";
  }

  /** The path of the page about this error in the project's documentation. */
  get page(): string {
    return `docs/errors/${this.code}.md`;
  }
}

/** Bytes that end too early: a RangeError, as reading beyond a DataView is. */
export function tooShort(needed: number, offset: number, left: number): RangeError {
  return new RangeError(
    `BSATN ends too early: ${needed} byte(s) needed at offset ${offset}, ${left} left [LC0801]`,
  );
}

/** A sum tag that the type does not have. */
export function badTag(tag: number, type: string): LightconeError {
  return new LightconeError("LC0802", `BSATN has tag ${tag}, which ${type} does not have`);
}

/** A value that its type cannot express. */
export function badValue(what: string): TypeError {
  return new TypeError(`${what} [LC0803]`);
}

/**
 * Thrown by a reducer or procedure to refuse a call: the transaction is rolled back, and the caller gets the message.
 */
export class SenderError extends Error {
  // biome-ignore lint/complexity/noUselessConstructor: the message is required here, unlike in Error
  constructor(message: string) {
    super(message);
  }

  override get name(): string {
    return "SenderError";
  }
}

/** The client's error for a reducer that failed by mistake. */
export class InternalError extends Error {
  // biome-ignore lint/complexity/noUselessConstructor: the message is required here, unlike in Error
  constructor(message: string) {
    super(message);
  }

  override get name(): string {
    return "InternalError";
  }
}
