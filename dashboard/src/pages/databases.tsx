// The databases of this server: all of them on the server's own machine, else those in which the visitor has a role.

import { type ReactNode, useEffect, useMemo, useState } from "react";
import * as api from "../api";
import { Spark } from "../chart";
import { loadInfo } from "../database";
import { isObject } from "../json";
import { metrics, type Track, want } from "../metrics";
import { go, linkTo } from "../router";
import { session } from "../session";
import { useStore } from "../store";
import {
  Badge,
  Button,
  bytes,
  Empty,
  Head,
  Loading,
  Note,
  rate,
  Search,
  shortIdentity,
  useLoaded,
  whole,
} from "../ui";

/** Databases that are listed; the filter finds the others. */
const SHOWN_MAX = 200;
/** Names that are asked for, where the server does not tell of all databases. */
const OWN_MAX = 100;

interface Entry {
  identity: string;
  names: string[];
  role: string | undefined;
}

async function loadOwn(identity: string, token: string): Promise<Entry[]> {
  const answer = await api.json(`identity/${identity}/databases`, { token });
  if (!isObject(answer)) return [];
  const own = Array.isArray(answer["identities"]) ? answer["identities"].map(String) : [];
  const roles = Array.isArray(answer["roles"]) ? answer["roles"].filter(isObject) : [];
  const all = [
    ...own.map((one) => ({ identity: one, role: "owner" })),
    ...roles.map((one) => ({ identity: String(one["identity"]), role: String(one["role"]) })),
  ].slice(0, OWN_MAX);
  return Promise.all(
    all.map(async (entry) => {
      const found = await api.json(`database/${entry.identity}/names`, { token }).catch(() => null);
      const names = isObject(found) && Array.isArray(found["names"]) ? found["names"].map(String) : [];
      return { ...entry, names };
    }),
  );
}

export function Databases(): ReactNode {
  const { token, identity } = useStore(session)!;
  const { databases, isServerOpen } = useStore(metrics);
  const own = useLoaded(() => loadOwn(identity, token), [identity, token]);
  const [letters, setLetters] = useState("");
  const [wanted, setWanted] = useState("");
  const entries = useMemo(() => {
    const found = new Map<string, Entry>();
    for (const entry of own.value ?? []) found.set(entry.identity, entry);
    for (const [id, { now }] of databases) {
      if (!found.has(id) && isServerOpen && /^[0-9a-f]{64}$/.test(id))
        found.set(id, { identity: id, names: now.names, role: undefined });
    }
    const all = [...found.values()];
    return all.sort((a, b) => (a.names[0] ?? "~").localeCompare(b.names[0] ?? "~"));
  }, [own.value, databases, isServerOpen]);
  useEffect(() => want(entries.map((entry) => entry.identity)), [entries]);
  const listed = entries.filter((entry) =>
    [...entry.names, entry.identity].some((name) => name.toLowerCase().includes(letters.toLowerCase())),
  );
  return (
    <div className="scroll page">
      <Head title="Databases" about={isServerOpen === false ? "Those in which you have a role." : undefined}>
        <form
          className="inline"
          onSubmit={(event) => {
            event.preventDefault();
            if (wanted.trim()) go("db", wanted.trim());
          }}
        >
          <input
            type="text"
            aria-label="Name or identity of a database"
            placeholder="name or identity"
            value={wanted}
            spellCheck={false}
            onChange={(event) => setWanted(event.target.value)}
          />
          <Button submit>Open</Button>
        </form>
      </Head>
      {own.error && <Note tone="bad">{own.error}</Note>}
      {entries.length > 8 && (
        <Search
          label="Filter databases"
          placeholder="Filter"
          value={letters}
          onChange={setLetters}
          className="search wide"
        />
      )}
      {entries.length === 0 && own.value && isServerOpen !== undefined ? (
        <Empty title="No databases">
          Open one by its name, or publish a module: <code>spacetime publish my-database</code>
        </Empty>
      ) : entries.length === 0 ? (
        !own.error && <Loading />
      ) : (
        <div className="table-frame" tabIndex={0} role="region" aria-label="Databases">
          <table className="roomy">
            <thead>
              <tr>
                <th>Name</th>
                <th>Owner</th>
                <th className="right">Rows</th>
                <th className="right">Size</th>
                <th className="right">Connections</th>
                <th className="right">Calls/s</th>
                <th className="right">Errors/s</th>
                <th>
                  <span className="visually-hidden">Calls lately</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {listed.slice(0, SHOWN_MAX).map((entry) => (
                <DatabaseRow key={entry.identity} entry={entry} track={databases.get(entry.identity)} />
              ))}
            </tbody>
          </table>
        </div>
      )}
      {listed.length > SHOWN_MAX && (
        <p className="fine">and {whole(listed.length - SHOWN_MAX)} more: filter to find them</p>
      )}
    </div>
  );
}

function DatabaseRow({ entry, track }: { entry: Entry; track: Track | undefined }): ReactNode {
  const { token, identity } = useStore(session)!;
  const info = useLoaded(() => loadInfo(entry.identity, token), [entry.identity, token]);
  const owner = info.value?.owner;
  const name = entry.names[0];
  const tables = [...(track?.now.tables.values() ?? [])];
  const last = track?.fine.at(-1);
  const errors = last?.errors ?? 0;
  return (
    <tr>
      <td>
        <a className="strong" href={linkTo("db", name ?? entry.identity, "tables")}>
          {name ?? <span className="mono">{shortIdentity(entry.identity)}</span>}
        </a>{" "}
        {track && !track.now.isOpen && <Badge>closed</Badge>}{" "}
        {track?.now.isReadOnly && <Badge tone="bad">read-only</Badge>}
        {name && <div className="under mono">{shortIdentity(entry.identity)}</div>}
      </td>
      <td>
        {owner === identity ? (
          <Badge tone="accent">you</Badge>
        ) : (
          <span className="mono dim">{owner ? shortIdentity(owner) : "–"}</span>
        )}{" "}
        {entry.role && owner !== identity && <Badge>{entry.role}</Badge>}
      </td>
      <td className="right">{track ? whole(tables.reduce((all, one) => all + one.rows, 0)) : "–"}</td>
      <td className="right">{track ? bytes(tables.reduce((all, one) => all + one.bytes, 0)) : "–"}</td>
      <td className="right">{track ? whole(track.now.numbers["clients"] ?? 0) : "–"}</td>
      <td className="right">{rate(last?.calls)}</td>
      <td className={`right ${errors > 0 ? "wrong" : ""}`}>{rate(last?.errors)}</td>
      <td>
        <Spark values={track?.fine.map((point) => point.calls) ?? []} />
      </td>
    </tr>
  );
}
