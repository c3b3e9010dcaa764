import { env_get } from "spacetime:sys@2.2";
import type { EnvVarType } from "../core/module_def";
import { readEnvironmentWith } from "./environment_access";
import { type ModuleExport, registerExport } from "./registry";

/** Which values a variable may have: any, or one of these. */
export type EnvironmentValues = "string" | readonly string[];

/** A variable that may have no value. */
export interface OptionalVariable<Values extends EnvironmentValues = EnvironmentValues> {
  readonly optional: Values;
}

/** Variables by their keys. One that is not `{ optional: … }` must have a value whenever the module is published. */
export type EnvironmentDeclaration = Record<string, EnvironmentValues | OptionalVariable>;

type ValueOf<Values> = Values extends readonly (infer Value extends string)[] ? Value : string;

/** The values of declared variables. */
export type EnvironmentOf<Declared extends EnvironmentDeclaration> = {
  readonly [Key in keyof Declared]: Declared[Key] extends OptionalVariable<infer Values>
    ? ValueOf<Values> | undefined
    : ValueOf<Declared[Key]>;
};

/** What a module exports of its environment. Its members are read while a function of the module runs. */
export type EnvironmentExport<Declared extends EnvironmentDeclaration> = ModuleExport &
  EnvironmentOf<Declared>;

function typeOf(values: EnvironmentValues): EnvVarType {
  if (typeof values === "string") return { tag: "String" };
  const [first] = values;
  return values.length === 1 && first !== undefined
    ? { tag: "StringLiteral", value: first }
    : { tag: "Union", value: [...values] };
}

/**
 * Declares the variables of the module's environment, and gives their values by name. `ctx.env.get(key)` reads them too.
 * Needs a host of 2.11 or later.
 *
 * The package `spacetimedb` had no such function when this was written: the name and the form of declarations are a guess.
 *
 * ```ts
 * export const env = environment({
 *   API_KEY: "string",
 *   MODE: ["dev", "prod"],
 *   GREETING: { optional: "string" },
 * });
 * export const start = spacetimedb.reducer((ctx) => {
 *   console.info(env.MODE, ctx.env.get("GREETING"));
 * });
 * ```
 */
export function environment<const Declared extends EnvironmentDeclaration>(
  declared: Declared,
): EnvironmentExport<Declared> {
  readEnvironmentWith(env_get);
  const exported: ModuleExport = {
    [registerExport](registry) {
      registry.moduleDef.environment = Object.entries<EnvironmentDeclaration[string]>(declared).map(
        ([name, variable]) => {
          const optional = typeof variable === "object" && "optional" in variable;
          return { name, ty: typeOf(optional ? variable.optional : variable), optional };
        },
      );
    },
  };
  for (const name of Object.keys(declared)) {
    Object.defineProperty(exported, name, { enumerable: true, get: () => env_get(name) ?? undefined });
  }
  return exported as EnvironmentExport<Declared>;
}
