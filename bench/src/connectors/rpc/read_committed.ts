// A system of the Postgres class once more, under READ COMMITTED. All of its transfers lock both rows in the order of their
// ids (`FOR UPDATE`), so the sums stay right without a serialization failure to repeat.

import type { RpcDefinitionOptions } from "../../init/rpc_server";

export function readCommitted(key: string, options: Omit<RpcDefinitionOptions, "key">): RpcDefinitionOptions {
  return {
    ...options,
    key,
    // No variable and no usual port: those name a server whose isolation is another.
    urlVariable: `${options.urlVariable}_READ_COMMITTED`,
    urlOfFlag: undefined,
    defaultUrl: undefined,
    back: (context) =>
      options.back({ ...context, config: { ...context.config, pgIsolation: "read-committed" } }),
  };
}
