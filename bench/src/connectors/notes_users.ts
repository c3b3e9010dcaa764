// The RPC servers of authed-load: they check a signed token at every request.

import { randomBytes } from "node:crypto";
import { type Back, sqliteBacking } from "../init/backing";
import { ownPostgres } from "../init/postgres_backing";
import { signToken } from "../rpc-servers/bearer";
import type { Connector } from "./connector";
import { rpcConnection } from "./rpc/rpc_connector";
import { rpcDefinition } from "./rpc/rpc_definition";

const serverFile = "src/rpc-servers/notes-rpc-server.ts";
const tokenLifeMilliseconds = 24 * 3600 * 1000;
/** Of this invocation: servers that run already must be started with the same one. */
const secret = process.env["NOTES_SECRET"] || randomBytes(32).toString("base64url");

function userConnection(name: string, url: string, user = "root"): Connector {
  const token = signToken(user, secret, Date.now() + tokenLifeMilliseconds);
  return {
    ...rpcConnection({ name, url, initialBalance: 0, headers: { authorization: `Bearer ${token}` } }),
    createWorker: async ({ index }) => userConnection(name, url, `user ${index}`),
  };
}

const userDefinition = (key: string, store: "postgres" | "sqlite", back: Back) =>
  rpcDefinition({
    key,
    serverFile,
    urlVariable: "NOTES_RPC_URL",
    defaultUrl: "http://127.0.0.1:4109",
    portVariable: "NOTES_RPC_PORT",
    startCommand: `NOTES_STORE=${store} NOTES_SECRET=<secret> pnpm tsx ${serverFile}`,
    async back(context) {
      const backing = await back(context);
      const environment = { ...backing.environment, NOTES_STORE: store, NOTES_SECRET: secret };
      return { ...backing, environment };
    },
    create: (_config, url) => userConnection(key, url),
  });

export const notesUsers: Record<string, ReturnType<typeof userDefinition>> = {
  postgres_rpc: userDefinition("postgres_rpc", "postgres", ownPostgres()),
  sqlite_rpc: userDefinition("sqlite_rpc", "sqlite", sqliteBacking),
};
