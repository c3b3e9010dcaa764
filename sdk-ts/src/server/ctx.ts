import { ConnectionId } from "../core/connection_id";
import { LightconeError } from "../core/errors";
import { Identity } from "../core/identity";
import { Timestamp } from "../core/timestamp";
import { Uuid } from "../core/uuid";
import type { AuthCtx, JsonObject, JwtClaims } from "./ctx_types";
import { contextEnvironment } from "./environment_access";
import { httpClient } from "./http";
import { makeRandom, type Random } from "./random";
import { sys } from "./sys";
import { inTransaction } from "./transactions";

let ownIdentity: Identity | undefined;

/** The identity of the database: asked for once. */
export function databaseIdentity(): Identity {
  ownIdentity ??= new Identity(sys.identity());
  return ownIdentity;
}

/** Random numbers and UUIDs of one call. */
export class CallRandom {
  readonly #timestamp: Timestamp;
  #random: Random | undefined;
  readonly #counter = { value: 0 };

  constructor(timestamp: Timestamp) {
    this.#timestamp = timestamp;
  }

  get random(): Random {
    this.#random ??= makeRandom(this.#timestamp);
    return this.#random;
  }

  newUuidV4(): Uuid {
    return Uuid.fromRandomBytesV4(this.random.fill(new Uint8Array(16)));
  }

  newUuidV7(): Uuid {
    return Uuid.fromCounterV7(this.#counter, this.#timestamp, this.random.fill(new Uint8Array(4)));
  }
}

function parseClaims(payload: string): JsonObject {
  let claims: unknown;
  try {
    claims = JSON.parse(payload);
  } catch (cause) {
    throw new LightconeError("LC0806", "the claims of the caller's token are not JSON", { cause });
  }
  if (typeof claims !== "object" || claims === null || Array.isArray(claims)) {
    throw new LightconeError("LC0806", "the claims of the caller's token are not a JSON object");
  }
  return claims as JsonObject;
}

/** The authentication of a caller; the token of a connection is read on demand. */
export class Auth implements AuthCtx {
  readonly #connectionId: ConnectionId | null;
  readonly #sender: Identity;
  #payload: string | undefined;
  #jwt: JwtClaims | null | undefined;

  /** `payload`: the claims of a caller who has a token and no connection. */
  constructor(connectionId: ConnectionId | null, sender: Identity, payload?: Uint8Array) {
    this.#connectionId = connectionId;
    this.#sender = sender;
    if (payload !== undefined) this.#payload = new TextDecoder("utf-8").decode(payload);
  }

  /** Whether the database calls by itself, as for schedules (2.14). */
  get isInternal(): boolean {
    return this.#sender.isEqual(databaseIdentity());
  }

  #text(): string {
    if (this.#payload === undefined) {
      this.#payload =
        this.#connectionId === null
          ? ""
          : new TextDecoder("utf-8").decode(sys.get_jwt_payload(this.#connectionId.__connection_id__));
    }
    return this.#payload;
  }

  get hasJWT(): boolean {
    return this.#text() !== "";
  }

  get jwt(): JwtClaims | null {
    if (this.#jwt === undefined) {
      const rawPayload = this.#text();
      this.#jwt = rawPayload === "" ? null : makeClaims(rawPayload, parseClaims(rawPayload), this.#sender);
    }
    return this.#jwt;
  }
}

function makeClaims(rawPayload: string, fullPayload: JsonObject, identity: Identity): JwtClaims {
  const { aud } = fullPayload;
  return Object.freeze({
    rawPayload,
    fullPayload,
    identity,
    subject: fullPayload["sub"] as string,
    issuer: fullPayload["iss"] as string,
    audience:
      aud === undefined || aud === null ? [] : Array.isArray(aud) ? (aud as string[]) : [aud as string],
  });
}

/** The context of reducers: one object for all calls of a module, since calls come one after the other. */
export class ReducerCtxImpl {
  sender!: Identity;
  timestamp!: Timestamp;
  connectionId!: ConnectionId | null;
  readonly db: object;
  readonly as: object;
  readonly env = contextEnvironment;
  #call: CallRandom | undefined;
  #auth: Auth | undefined;

  constructor(db: object, as: object) {
    this.db = db;
    this.as = as;
  }

  /** Makes this the context of another call. */
  begin(sender: Identity, timestamp: Timestamp, connectionId: ConnectionId | null, auth?: Auth): this {
    this.sender = sender;
    this.timestamp = timestamp;
    this.connectionId = connectionId;
    this.#call = undefined;
    this.#auth = auth;
    return this;
  }

  get databaseIdentity(): Identity {
    return databaseIdentity();
  }

  get identity(): Identity {
    return databaseIdentity();
  }

  get senderAuth(): AuthCtx {
    this.#auth ??= new Auth(this.connectionId, this.sender);
    return this.#auth;
  }

  get #randomness(): CallRandom {
    this.#call ??= new CallRandom(this.timestamp);
    return this.#call;
  }

  get random(): Random {
    return this.#randomness.random;
  }

  newUuidV4(): Uuid {
    return this.#randomness.newUuidV4();
  }

  newUuidV7(): Uuid {
    return this.#randomness.newUuidV7();
  }
}

/**
 * The context of a call on a host that leaves it in a buffer (docs/js-abi.md): caller, time and connection are read
 * from there on demand. The buffer holds until the next call.
 */
class DirectCallCtx {
  readonly env = contextEnvironment;
  readonly #view: DataView;
  #sender: Identity | undefined;
  #timestamp: Timestamp | undefined;
  #connectionId: ConnectionId | null | undefined;
  #call: CallRandom | undefined;
  #used = false;
  readonly #randomOf: DirectCallCtx | undefined;

  /** `randomOf`: the context of the same call whose random numbers this one takes, so that none comes twice. */
  constructor(view: DataView, randomOf?: DirectCallCtx) {
    this.#view = view;
    this.#randomOf = randomOf;
  }

  /** Makes this the context of another call. */
  begin(): void {
    if (!this.#used) return;
    this.#used = false;
    this.#sender = undefined;
    this.#timestamp = undefined;
    this.#connectionId = undefined;
    this.#call = undefined;
  }

  /** Makes this the context of a transaction of the call, which has a time of its own. */
  beginTransaction(timestamp: Timestamp): void {
    this.begin();
    this.#used = true;
    this.#timestamp = timestamp;
  }

  get sender(): Identity {
    if (this.#sender === undefined) {
      this.#used = true;
      const view = this.#view;
      this.#sender = new Identity(
        (view.getBigUint64(24, true) << 192n) |
          (view.getBigUint64(16, true) << 128n) |
          (view.getBigUint64(8, true) << 64n) |
          view.getBigUint64(0, true),
      );
    }
    return this.#sender;
  }

  get connectionId(): ConnectionId | null {
    if (this.#connectionId === undefined) {
      this.#used = true;
      const id = (this.#view.getBigUint64(40, true) << 64n) | this.#view.getBigUint64(32, true);
      this.#connectionId = id === 0n ? null : new ConnectionId(id);
    }
    return this.#connectionId;
  }

  get timestamp(): Timestamp {
    if (this.#timestamp === undefined) {
      this.#used = true;
      this.#timestamp = new Timestamp(this.#view.getBigInt64(48, true));
    }
    return this.#timestamp;
  }

  get databaseIdentity(): Identity {
    return databaseIdentity();
  }

  get identity(): Identity {
    return databaseIdentity();
  }

  get #randomness(): CallRandom {
    if (this.#randomOf !== undefined) return this.#randomOf.#randomness;
    this.#used = true;
    this.#call ??= new CallRandom(this.timestamp);
    return this.#call;
  }

  get random(): Random {
    return this.#randomness.random;
  }

  newUuidV4(): Uuid {
    return this.#randomness.newUuidV4();
  }

  newUuidV7(): Uuid {
    return this.#randomness.newUuidV7();
  }
}

/** The context of reducers, and of transactions of procedures, on such a host. */
export class DirectReducerCtx extends DirectCallCtx {
  readonly db: object;
  readonly as: object;
  #auth: Auth | undefined;

  constructor(db: object, as: object, view: DataView) {
    super(view);
    this.db = db;
    this.as = as;
  }

  override begin(): void {
    super.begin();
    this.#auth = undefined;
  }

  get senderAuth(): AuthCtx {
    this.#auth ??= new Auth(this.connectionId, this.sender);
    return this.#auth;
  }
}

/** The context of procedures on such a host. */
export class DirectProcedureCtx extends DirectCallCtx {
  readonly http = httpClient;
  readonly as: object;
  readonly #transaction: (timestamp: Timestamp) => DirectReducerCtx;

  /** `transaction`: the context of a transaction that begins. */
  constructor(
    view: DataView,
    transaction: (timestamp: Timestamp) => DirectReducerCtx,
    as: object,
    randomOf: DirectProcedureCtx | undefined,
  ) {
    super(view, randomOf);
    this.as = as;
    this.#transaction = transaction;
  }

  withTx<T>(body: (ctx: DirectReducerCtx) => T): T {
    return inTransaction(this.#transaction, body);
  }
}
