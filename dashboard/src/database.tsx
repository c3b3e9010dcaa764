// The database that the pages below are about.

import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import * as api from "./api";
import { isObject, type Json } from "./json";
import { Live } from "./live";
import { metrics, type Track, trackOf, want } from "./metrics";
import { loadSchema, type Schema } from "./schema";
import { session } from "./session";
import { useStore } from "./store";
import { Empty, Loading, useLoaded } from "./ui";

export interface Info {
  identity: string;
  owner: string;
  host: string;
  program: string;
}

export interface Database {
  name: string;
  token: string;
  info: Info;
  schema: Schema;
  reload: () => void;
  live: Live;
  isOwner: boolean;
}

const DatabaseContext = createContext<Database | undefined>(undefined);

export function useDatabase(): Database {
  const found = useContext(DatabaseContext);
  if (!found) throw new Error("a page of a database stands outside of one");
  return found;
}

function identityIn(json: Json | undefined): string {
  const text = isObject(json) ? json["__identity__"] : undefined;
  return typeof text === "string" ? text.replace(/^0x/, "").padStart(64, "0") : "";
}

export async function loadInfo(name: string, token: string): Promise<Info> {
  const info = await api.json(`database/${api.part(name)}`, { token });
  if (!isObject(info)) throw new Error("The server's answer is not understood.");
  return {
    identity: identityIn(info["database_identity"]),
    owner: identityIn(info["owner_identity"]),
    host: isObject(info["host_type"]) ? (Object.keys(info["host_type"])[0] ?? "") : "",
    program: typeof info["initial_program"] === "string" ? info["initial_program"] : "",
  };
}

export function DatabaseFrame({ name, children }: { name: string; children: ReactNode }): ReactNode {
  const { token, identity } = useStore(session)!;
  const loaded = useLoaded(async () => {
    const [info, schema] = await Promise.all([loadInfo(name, token), loadSchema(name, token)]);
    return { info, schema, name };
  }, [name, token]);
  const [live, setLive] = useState<Live>();
  const current = loaded.value?.name === name ? loaded.value : undefined;
  useEffect(() => want([name]), [name]);
  useEffect(() => {
    if (!current) return;
    const made = new Live(name, token, current.schema);
    setLive(made);
    return () => {
      setLive(undefined);
      made.close();
    };
  }, [current, name, token]);
  const value = useMemo(
    () =>
      current &&
      live && { ...current, token, reload: loaded.reload, live, isOwner: current.info.owner === identity },
    [name, token, current, live, loaded.reload, identity],
  );
  if (loaded.error) return <Empty title={`“${name}” cannot be shown`}>{loaded.error}</Empty>;
  if (!value) return <Loading />;
  return <DatabaseContext value={value}>{children}</DatabaseContext>;
}

/** What is counted of the database. */
export function useTrack(): Track | undefined {
  const { info } = useDatabase();
  return trackOf(useStore(metrics), info.identity);
}
