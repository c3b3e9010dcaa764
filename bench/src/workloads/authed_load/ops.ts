// The operations of authed-load, on servers and on the modules `notes-ts` and `notes-rs`.

import type { CallArguments } from "../../connectors/connector";
import { call, found } from "../calls";
import type { RunOperation } from "../workload";

/** Without notes of a group, which data-layer changes together. */
const seed = call("note_seed", found, ({ notes }) => ({ notes, grouped: 0, group: "none" }));

export const authedRpcOps: Record<string, RunOperation> = {
  seed,
  read: call("note_find_many", found),
  create: call("note_create", found),
  update: call("note_update", found),
  delete: call("note_delete", found),
  events: call("note_events", found),
};

const withBigId = ({ id, ...args }: CallArguments) => ({ ...args, id: BigInt(id as number) });

export const authedSdkOps: Record<string, RunOperation> = {
  ...authedRpcOps,
  // A procedure, which answers the id.
  create: call("note_add", found),
  update: call("note_update", found, withBigId),
  delete: call("note_delete", found, withBigId),
};
