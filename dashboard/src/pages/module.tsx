// The program: what it defines, which versions there were, and what a new one would change.

import { type ReactNode, useState } from "react";
import * as api from "../api";
import { useDatabase } from "../database";
import { isObject, type Json } from "../json";
import { lastLogs } from "../logs";
import { linkTo } from "../router";
import { sql } from "../sql";
import { nameOf } from "../types";
import { Badge, Button, bytes, Head, Loading, Note, Stat, useLoaded, whole } from "../ui";

const LOG_LINES = 2_500;
const VERSIONS_MAX = 50;
/** Tables, columns of each, types, rules. */
const LISTED_MAX = 300;

/** The digits of a hash, from the number whose least byte is the first of the hash. */
const hashOf = (number: string): string =>
  number.replace(/^0x/, "").padStart(64, "0").match(/../g)!.reverse().join("");

async function loadVersions(name: string, token: string): Promise<{ at: number; hash: string }[]> {
  const lines = await lastLogs(name, token, LOG_LINES);
  const found = lines.flatMap((line) => {
    const hash = /^Updated program to (?:0x)?([0-9a-f]{8,64})/.exec(line.message)?.[1];
    return hash && line.isHost ? [{ at: line.at, hash }] : [];
  });
  return found.reverse().slice(0, VERSIONS_MAX);
}

export function Module(): ReactNode {
  const { name, token, info, schema, reload } = useDatabase();
  const program = useLoaded(async () => {
    const { rows } = await sql(name, token, "SELECT program_kind, program_hash FROM st_module");
    return rows[0] ? hashOf(String(rows[0][1])) : undefined;
  }, [name, token]);
  const versions = useLoaded(() => loadVersions(name, token), [name, token]);
  const count = (kind: string) => whole(schema.functions.filter((one) => one.kind === kind).length);
  return (
    <div className="scroll page">
      <Head title="Module" about={info.host === "Js" ? "JavaScript" : "WebAssembly"}>
        <Button icon="refresh" onClick={reload}>
          Read again
        </Button>
      </Head>
      <dl className="stats">
        <Stat name="Tables" value={whole(schema.tables.filter((one) => !one.isView).length)} />
        <Stat name="Views" value={count("view")} />
        <Stat name="Reducers" value={count("reducer")} />
        <Stat name="Procedures" value={count("procedure")} />
        <Stat name="HTTP handlers" value={count("handler")} />
      </dl>
      <dl className="facts">
        <dt>Database</dt>
        <dd className="mono wraps">0x{info.identity}</dd>
        <dt>Owner</dt>
        <dd className="mono wraps">0x{info.owner}</dd>
        <dt>Program</dt>
        <dd className="mono wraps">
          {program.value ? (
            `0x${program.value}`
          ) : (
            <span className="dim">only readers of the database see it</span>
          )}
        </dd>
      </dl>
      <Publish
        running={program.value}
        onDone={() => {
          reload();
          program.reload();
          versions.reload();
        }}
      />
      <h2>Versions</h2>
      {versions.error ? (
        <p className="dim">{versions.error}</p>
      ) : !versions.value ? (
        <Loading />
      ) : versions.value.length === 0 ? (
        <p className="dim">
          No update stands in the log of today: this is the program that the database began the day with.
        </p>
      ) : (
        <ul className="versions">
          {versions.value.map((one) => (
            <li key={one.at}>
              <time>{new Date(one.at).toLocaleString("en-GB")}</time>{" "}
              <span className="mono">{one.hash.slice(0, 16)}…</span>{" "}
              {program.value === one.hash && <Badge tone="good">runs</Badge>}
            </li>
          ))}
        </ul>
      )}
      <h2>Schema</h2>
      <ul className="schema">
        {schema.tables.slice(0, LISTED_MAX).map((table) => (
          <li key={`${table.isView} ${table.name}`}>
            <details>
              <summary>
                <span className="mono">{table.name}</span>{" "}
                <Badge>{table.isView ? "view" : table.isEvent ? "event table" : "table"}</Badge>{" "}
                <span className="dim">{whole(table.columns.length)} columns</span>
              </summary>
              <ul className="columns mono">
                {table.columns.slice(0, LISTED_MAX).map((column, at) => (
                  <li key={at}>
                    {column.name} <span className="dim">{nameOf(column.type)}</span>{" "}
                    {column.isPrimaryKey && <Badge tone="accent">key</Badge>}
                  </li>
                ))}
              </ul>
              <a href={linkTo("db", name, "tables", table.name)}>Open</a>
            </details>
          </li>
        ))}
      </ul>
      <h2>Types</h2>
      <ul className="columns mono">
        {schema.types.slice(0, LISTED_MAX).map((type) => (
          <li key={type.name} className="wraps">
            {type.name} <span className="dim">{type.text}</span>
          </li>
        ))}
      </ul>
      {schema.rules.length > 0 && (
        <>
          <h2>Row-level security</h2>
          <ul className="columns mono">
            {schema.rules.slice(0, LISTED_MAX).map((rule) => (
              <li key={rule} className="wraps">
                {rule}
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}

interface Earlier {
  hash: string;
  host: string;
  bytes: number;
  until: number;
}

async function loadEarlier(name: string, token: string): Promise<Earlier[]> {
  const answer = await api.json(`database/${api.part(name)}/programs`, { token });
  const programs = isObject(answer) && Array.isArray(answer["programs"]) ? answer["programs"] : [];
  return programs.filter(isObject).map((one) => ({
    hash: String(one["program"]),
    host: String(one["host_type"]),
    bytes: Number(one["bytes"]),
    until: Number(one["until_us"]) / 1000,
  }));
}

/** A program that may be published, and what it is called here. */
interface Candidate {
  title: string;
  host: string;
  program: Blob;
}

interface MigrationPlan {
  title: string;
  text: string;
  breaks: boolean;
  obstacles: string[];
  seconds: number | undefined;
  /** What a publish of it names. undefined: there is none. */
  token: string | undefined;
}

function planOf(answer: Json): MigrationPlan {
  const outcome = isObject(answer) ? answer : {};
  const auto = outcome["AutoMigrate"];
  const manual = outcome["ManualMigrate"];
  const textOf = (json: Json | undefined) => (typeof json === "string" ? json : "");
  if (!isObject(auto)) {
    const reason = isObject(manual) ? textOf(manual["reason"]) : "";
    return {
      title: "No plan leads there",
      text: reason,
      breaks: false,
      obstacles: [],
      seconds: undefined,
      token: undefined,
    };
  }
  const obstacles = Array.isArray(auto["obstacles"]) ? auto["obstacles"].map(String) : [];
  const rehearsal = auto["rehearsal"];
  const plan = textOf(auto["migrate_plan"]);
  // A view is computed anew with every program, which changes no schema.
  const isChange = (step: Json) => !isObject(step) || step["kind"] !== "UpdateView";
  const steps = Array.isArray(auto["steps"]) ? auto["steps"].filter(isChange).length : 0;
  return {
    title:
      obstacles.length > 0
        ? "The rows refuse it"
        : steps === 0
          ? "The schema stays as it is"
          : `${whole(steps)} ${steps === 1 ? "step" : "steps"}`,
    text: plan,
    breaks: auto["break_clients"] === true,
    obstacles,
    seconds: isObject(rehearsal) ? Number(rehearsal["seconds"]) : undefined,
    token: obstacles.length === 0 ? textOf(auto["token"]) : undefined,
  };
}

/** What publishing a file, or an earlier program, would do; and doing it. */
function Publish(props: { running: string | undefined; onDone: () => void }): ReactNode {
  const { name, token } = useDatabase();
  const earlier = useLoaded(() => loadEarlier(name, token), [name, token]);
  const [candidate, setCandidate] = useState<Candidate>();
  const [plan, setPlan] = useState<MigrationPlan>();
  const [error, setError] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const path = `database/${api.part(name)}`;
  const work = async (todo: () => Promise<void>) => {
    setBusy(true);
    setError(undefined);
    try {
      await todo();
    } catch (failure) {
      setError(api.messageOf(failure));
    } finally {
      setBusy(false);
    }
  };
  const look = (find: () => Promise<Candidate>) =>
    work(async () => {
      setPlan(undefined);
      const found = await find();
      setCandidate(found);
      const query = `host_type=${found.host}&style=NoColor&dry_run=true`;
      const options = { method: "POST", token, body: found.program };
      setPlan(planOf(await api.json(`${path}/pre_publish?${query}`, options)));
    });
  const publish = ({ host, program }: Candidate, planned: string) =>
    work(async () => {
      const query = `host_type=${host}&policy=BreakClients&token=${planned}`;
      await api.text(`${path}?${query}`, { method: "PUT", token, body: program });
      setPlan(undefined);
      earlier.reload();
      props.onDone();
    });
  return (
    <section className="card" aria-label="Publish">
      <header className="card-head">
        <h2>What would a publish change?</h2>
      </header>
      <label className="field">
        <span>A built module, .wasm or .js. It is tried on a copy of the data first.</span>
        <input
          type="file"
          accept=".wasm,.js,.mjs"
          disabled={isBusy}
          onChange={(event) => {
            const file = event.target.files?.[0];
            const host = file?.name.endsWith(".wasm") ? "Wasm" : "Js";
            if (file) void look(async () => ({ title: file.name, host, program: file }));
          }}
        />
      </label>
      {(earlier.value ?? []).length > 0 && (
        <>
          <h3>Or one that ran before</h3>
          <ul className="versions">
            {earlier.value!.map((one) => (
              <li key={one.hash}>
                <time>until {new Date(one.until).toLocaleString("en-GB")}</time>{" "}
                <span className="mono">{one.hash.slice(0, 16)}…</span>{" "}
                <span className="dim">{bytes(one.bytes)}</span>{" "}
                {one.hash === props.running ? (
                  <Badge tone="good">runs</Badge>
                ) : (
                  <Button
                    disabled={isBusy}
                    onClick={() =>
                      void look(async () => ({
                        title: `${one.hash.slice(0, 16)}…`,
                        host: one.host,
                        program: await api.blob(`${path}/programs/${one.hash}`, { token }),
                      }))
                    }
                  >
                    Go back
                  </Button>
                )}
              </li>
            ))}
          </ul>
        </>
      )}
      {isBusy && <Loading />}
      {error && <Note tone="bad">{error}</Note>}
      {candidate && plan && (
        <div className="migration" role="status">
          <p>
            <strong>{plan.title}</strong> <span className="mono">{candidate.title}</span>{" "}
            {plan.breaks && <Badge tone="warn">disconnects clients</Badge>}{" "}
            {plan.seconds !== undefined && (
              <span className="dim">took {plan.seconds.toFixed(3)} s on the copy</span>
            )}
          </p>
          {plan.obstacles.map((one) => (
            <Note key={one} tone="bad">
              {one}
            </Note>
          ))}
          {plan.text && <pre className="statement">{plan.text}</pre>}
          {plan.token && (
            <Button
              kind={plan.breaks ? "danger" : "primary"}
              disabled={isBusy}
              onClick={() => void publish(candidate, plan.token!)}
            >
              Publish
            </Button>
          )}
        </div>
      )}
    </section>
  );
}
