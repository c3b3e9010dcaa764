import { LightconeError } from "../core/errors";

/** The variables of a module's environment, as a publisher has set them. */
export interface Environment {
  /**
   * The value of a variable that the module declares with `environment`; `undefined` if it is optional and has none.
   * Of a procedure outside of a transaction, each call reads for itself.
   */
  get(key: string): string | undefined;
}

let read: ((key: string) => string | null) | undefined;

/** Where values come from. Only modules that declare variables know it: a host before 2.11 has no such function. */
export function readEnvironmentWith(envGet: (key: string) => string | null): void {
  read = envGet;
}

/** `ctx.env` of every context. */
export const contextEnvironment: Environment = {
  get(key) {
    if (read === undefined) {
      throw new LightconeError("LC0811", "this module declares no environment: export `environment({…})`");
    }
    return read(key) ?? undefined;
  },
};
