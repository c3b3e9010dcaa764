// The operations of authed-load: by RPC, and on the modules `notes-ts` and `notes-rs`.

import type { CallArguments } from "../../connectors/connector";
import type { Outcome, RunOperation } from "../workload";

const call =
  (name: string, args: (given: CallArguments) => CallArguments = (given) => given): RunOperation =>
  async (connection, given): Promise<Outcome> => ({
    ok: true,
    found: await connection.call(name, args(given)),
  });

export const authedRpcOps: Record<string, RunOperation> = {
  seed: call("note_seed"),
  read: call("note_find_many"),
  create: call("note_create"),
  update: call("note_update"),
  delete: call("note_delete"),
  events: call("note_events"),
};

export const authedSdkOps: Record<string, RunOperation> = {
  seed: call("noteSeed", ({ notes }) => ({ notes, grouped: 0, group: "" })),
  read: call("noteFindMany"),
  create: call("noteAdd"),
  update: call("noteUpdate", ({ id, title }) => ({ id: BigInt(id as number), title })),
  delete: call("noteDelete", ({ id }) => ({ id: BigInt(id as number) })),
  events: call("noteEvents"),
};
