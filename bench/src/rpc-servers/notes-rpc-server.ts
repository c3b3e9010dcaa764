// The server of authed-load (section 19): notes in PostgreSQL or SQLite (NOTES_STORE), every request with a bearer token
// that is signed with NOTES_SECRET.

import "dotenv/config";
import { verifyToken } from "./bearer";
import { type Kept, keptInPostgres, keptInSqlite } from "./kept";
import { type Guard, portOfEnvironment, runAsProgram, servedOn, serveRpc } from "./node_rpc_server";
import { postgresNotes } from "./notes/postgres";
import { sqliteNotes } from "./notes/sqlite";
import { type NoteStore, noteMethods } from "./notes/store";
import { poolMaxOfEnvironment } from "./postgres/service";
import { jsonReply, type RpcService } from "./rpc";

function openNotes(kind: string | undefined): Kept<NoteStore> & { roundTripsPerTx: number } {
  if (kind === "sqlite") return { ...keptInSqlite(sqliteNotes), roundTripsPerTx: 0 };
  if (kind !== "postgres") throw new Error("NOTES_STORE is sqlite, or postgres with PG_URL");
  return { ...keptInPostgres("notes-rpc", poolMaxOfEnvironment(), postgresNotes), roundTripsPerTx: 4 };
}

/** Methods that say nothing about the data. */
const isOpen = (body: string) => body === '{"name":"health"}' || body === '{"name":"describe"}';

const guardWith =
  (secret: string): Guard =>
  (request, body) => {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1];
    const user = token === undefined ? undefined : verifyToken(token, secret, Date.now());
    if (user !== undefined || isOpen(body)) return undefined;
    return jsonReply(401, { ok: false, error: "a signed bearer token is needed" });
  };

runAsProgram(async () => {
  const secret = process.env["NOTES_SECRET"];
  if (!secret) throw new Error("NOTES_SECRET is not set");
  const notes = openNotes(process.env["NOTES_STORE"]);
  const { roundTripsPerTx } = notes;
  const service: RpcService = {
    banner: "notes rpc server",
    hiddenErrorText: "internal server error",
    methods: {
      health: () => ({ status: "ok" }),
      describe: async () => ({ ...(await notes.describe()), roundTripsPerTx, orm: "none" }),
      ...noteMethods(notes.store),
    },
  };
  const port = portOfEnvironment(["NOTES_RPC_PORT"], 4109);
  return servedOn(notes, () => serveRpc(service, port, guardWith(secret)));
});
