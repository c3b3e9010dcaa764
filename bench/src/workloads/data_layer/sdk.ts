// data-layer on the modules `notes-ts` and `notes-rs`, by a client SDK: every operation is a round trip to the server.

import { type Ask, perConnection } from "../calls";

interface Row {
  id: bigint;
}

/** Ids of the server follow those of the workload, which begin at 1, at a distance. */
export const sdkNotes = perConnection((connection): Ask => {
  let first: Promise<bigint> | undefined;
  const distance = () => (first ??= connection.call("note_first").then((lowest) => (lowest as bigint) - 1n));
  const noteOf = async (row: Row) => ({ ...row, id: Number(row.id - (await distance())) });
  return async (name, args) => {
    const id = args["id"];
    const sent = id === undefined ? args : { ...args, id: BigInt(id as number) + (await distance()) };
    const answer = await connection.call(name, sent);
    if (name === "note_seed") first = undefined;
    if (Array.isArray(answer)) return Promise.all((answer as Row[]).map(noteOf));
    return name === "note_get" && answer ? noteOf(answer as Row) : answer;
  };
});
