// The session of a provider outside of React: which connection it has, and the calls that wait for it.

import { ClientError } from "../client";
import type { AnyConnectionBuilder } from "../client/db_connection_builder";
import {
  type ConnectionState,
  release,
  renew,
  replace,
  retain,
  type Session,
  sessionOf,
  snapshot,
  subscribe,
} from "./connection_pool";
import { WaitingCalls } from "./waiting_calls";

/** The connection of a provider from `start`, when it is mounted, to `end`; shared with others of the same session. */
export class ProviderSession {
  /** Calls of the components below. */
  readonly calls = new WaitingCalls();
  readonly #onChange: (state: ConnectionState) => void;
  #builder: AnyConnectionBuilder;
  #session: Session;
  #stop: (() => void) | undefined;

  constructor(builder: AnyConnectionBuilder, onChange: (state: ConnectionState) => void) {
    this.#builder = builder;
    this.#session = sessionOf(builder);
    this.#onChange = onChange;
  }

  start(): void {
    const { key } = this.#session;
    const publish = (): void => {
      const state = snapshot(key);
      this.calls.use(state.getConnection());
      this.#onChange(state);
    };
    retain(key, this.#builder);
    const unsubscribe = subscribe(key, publish);
    this.#stop = () => {
      unsubscribe();
      release(key);
    };
    publish();
  }

  end(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /** The provider has got another builder, which may be for another session. */
  use(builder: AnyConnectionBuilder): void {
    this.#move(builder, sessionOf(builder, this.#session));
    if (this.#stop) renew(this.#session.key, builder);
  }

  /** Connects anew, also if the builder is for the same session. */
  reconnect(builder: AnyConnectionBuilder): void {
    const { key } = this.#session;
    this.#move(builder, sessionOf(builder));
    if (this.#stop && this.#session.key === key) replace(key, builder);
  }

  #move(builder: AnyConnectionBuilder, session: Session): void {
    const before = this.#session.key;
    this.#builder = builder;
    this.#session = session;
    if (!this.#stop || session.key === before) return;
    this.end();
    this.start();
  }
}

/** The provider of a component, if there is one. */
export function providerOf<Provider>(found: Provider | null | undefined): Provider {
  if (!found) throw new ClientError("LC0852", "this function works below a provider only");
  return found;
}
