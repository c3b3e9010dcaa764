// Reducers, procedures, views and HTTP handlers: what they take, a form that calls them, and how they do.

import { type ReactNode, useState } from "react";
import * as api from "../api";
import { Charts, type Span, SpanTabs } from "../chart";
import { useDatabase, useTrack } from "../database";
import { jsonText, parseJson } from "../json";
import { countOf, errorsOf, metrics, quantile } from "../metrics";
import { linkTo, place } from "../router";
import type { Func, FunctionKind } from "../schema";
import { useStore } from "../store";
import { fromUntyped, nameOf, plain } from "../types";
import { Badge, Button, compact, Empty, micros, Note, rate, Search, Stat, whole } from "../ui";
import { type Argument, Arguments, argumentsJson, emptyArguments } from "./arguments";

const KINDS: { kind: FunctionKind; text: string }[] = [
  { kind: "reducer", text: "Reducers" },
  { kind: "procedure", text: "Procedures" },
  { kind: "view", text: "Views" },
  { kind: "handler", text: "HTTP handlers" },
];

/** In the metrics, a handler has a kind of two words. */
const metricOf = (func: Func): string =>
  `${func.kind === "handler" ? "http_handler" : func.kind} ${func.name}`;

/** Functions of a kind that are listed; the filter finds the others. */
const LISTED_MAX = 300;

export function Functions(): ReactNode {
  const { schema, name } = useDatabase();
  const [, , , kind, chosen] = useStore(place);
  const [letters, setLetters] = useState("");
  const track = useTrack();
  const all = schema.functions;
  if (all.length === 0) return <Empty title="This database has no functions" />;
  const found =
    all.find((one) => one.kind === kind && one.name === chosen) ??
    (chosen === undefined ? (all.find((one) => one.isCallable) ?? all[0]) : undefined);
  const matching = all.filter((one) => one.name.toLowerCase().includes(letters.toLowerCase()));
  return (
    <div className="split">
      <aside className="list" aria-label="Functions">
        <div className="list-head">
          <Search
            label="Filter functions"
            placeholder="Filter functions"
            value={letters}
            onChange={setLetters}
          />
          <label className="only-narrow">
            <span className="visually-hidden">Function</span>
            <select
              value={found ? linkTo("db", name, "functions", found.kind, found.name) : ""}
              onChange={(event) => {
                location.hash = event.target.value;
              }}
            >
              {all.slice(0, LISTED_MAX).map((one) => (
                <option
                  key={`${one.kind} ${one.name}`}
                  value={linkTo("db", name, "functions", one.kind, one.name)}
                >
                  {one.name} ({one.kind})
                </option>
              ))}
            </select>
          </label>
        </div>
        {KINDS.map(({ kind: group, text }) => {
          const members = matching.filter((one) => one.kind === group);
          if (members.length === 0) return null;
          return (
            <div key={group} className="list-group">
              <h2>{text}</h2>
              <ul>
                {members.slice(0, LISTED_MAX).map((one) => (
                  <li key={one.name}>
                    <a
                      href={linkTo("db", name, "functions", one.kind, one.name)}
                      aria-current={one === found ? "page" : undefined}
                    >
                      <span className="list-name">{one.name}</span>
                      {one.lifecycle ? (
                        <Badge>{lifecycleText(one.lifecycle)}</Badge>
                      ) : (
                        !one.isCallable && one.kind !== "view" && <Badge>private</Badge>
                      )}
                      <span className="list-count">
                        {countText(track?.now.functions.get(metricOf(one))?.times)}
                      </span>
                    </a>
                  </li>
                ))}
              </ul>
            </div>
          );
        })}
      </aside>
      {found ? (
        <OneFunction key={`${found.kind} ${found.name}`} func={found} />
      ) : (
        <Empty title={`There is no function “${chosen}”`} />
      )}
    </div>
  );
}

const lifecycleText = (name: string): string =>
  ({ Init: "init", OnConnect: "connect", OnDisconnect: "disconnect" })[name] ?? name;
const countText = (times: Parameters<typeof countOf>[0]): string => {
  const count = countOf(times);
  return count === 0 ? "" : compact(count);
};

function OneFunction({ func }: { func: Func }): ReactNode {
  const signature = `(${func.params.map((one) => `${one.name}: ${nameOf(one.type)}`).join(", ")})${func.returns ? ` → ${nameOf(func.returns)}` : ""}`;
  return (
    <section className="pane" aria-label={func.name}>
      <header className="pane-head">
        <h1>{func.name}</h1>
        <Badge tone="accent">{func.kind === "handler" ? "HTTP handler" : func.kind}</Badge>
        {func.lifecycle && <Badge>{lifecycleText(func.lifecycle)}</Badge>}
      </header>
      <div className="scroll">
        {func.kind !== "handler" && <p className="signature mono">{signature}</p>}
        {func.kind === "handler" ? (
          <Handler func={func} />
        ) : func.kind === "view" ? (
          <ViewLink func={func} />
        ) : (
          <Caller func={func} />
        )}
        <Course func={func} />
      </div>
    </section>
  );
}

function ViewLink({ func }: { func: Func }): ReactNode {
  const { name } = useDatabase();
  return (
    <p>
      <a href={linkTo("db", name, "tables", func.name)}>See its rows</a>, as they are for you.
    </p>
  );
}

function Handler({ func }: { func: Func }): ReactNode {
  const { name } = useDatabase();
  return (
    <>
      <h2>Routes</h2>
      {func.routes.length === 0 && <p className="dim">None leads here.</p>}
      <ul className="routes">
        {func.routes.map((route) => (
          <li key={`${route.method} ${route.path}`} className="mono">
            <Badge>{route.method}</Badge> /v1/database/{name}/route{route.path}
          </li>
        ))}
      </ul>
    </>
  );
}

interface Outcome {
  isGood: boolean;
  title: string;
  text: string;
  server_us: number | undefined;
  whole_ms: number;
}

function Caller({ func }: { func: Func }): ReactNode {
  const { name, token } = useDatabase();
  const [args, setArgs] = useState<Argument[]>(() => emptyArguments(func.params));
  const [outcome, setOutcome] = useState<Outcome>();
  const [isBusy, setBusy] = useState(false);
  const [wrong, setWrong] = useState<string>();
  if (func.lifecycle) return <Note>The host calls it by itself.</Note>;
  const call = async () => {
    let body: string;
    try {
      body = argumentsJson(func.params, args);
      setWrong(undefined);
    } catch (error) {
      setWrong(api.messageOf(error));
      return;
    }
    setBusy(true);
    const begun = performance.now();
    try {
      const path = `database/${api.part(name)}/call/${api.part(func.name)}`;
      const answer = await api.ask(path, { method: "POST", token, body, json: true });
      setOutcome(outcomeOf(func, answer, performance.now() - begun));
    } catch (error) {
      setWrong(api.messageOf(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      className="call"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isBusy) void call();
      }}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) event.currentTarget.requestSubmit();
      }}
    >
      {!func.isCallable && (
        <Note tone="warn">Private: only those may call it who may publish the module.</Note>
      )}
      <Arguments params={func.params} values={args} onChange={setArgs} />
      <div className="call-run">
        <Button kind="primary" icon="play" submit disabled={isBusy}>
          Call
        </Button>
        <kbd>Ctrl Enter</kbd>
      </div>
      {wrong && <Note tone="bad">{wrong}</Note>}
      {outcome && (
        <div className={`outcome ${outcome.isGood ? "good" : "bad"}`} role="status">
          <div className="outcome-head">
            <strong>{outcome.title}</strong>
            <span>
              {outcome.server_us ? `${micros(outcome.server_us)} in the database, ` : ""}
              {outcome.whole_ms.toFixed(1)} ms in all
            </span>
          </div>
          {outcome.text && <pre>{outcome.text}</pre>}
        </div>
      )}
    </form>
  );
}

function outcomeOf(func: Func, answer: api.Answer, whole_ms: number): Outcome {
  const isGood = answer.status === 200;
  const server_us = Number(answer.headers.get("spacetime-execution-duration-micros")) || undefined;
  const titles: Record<number, string> = {
    200: func.kind === "reducer" ? "Committed" : "Returned",
    530: "Refused by the function",
  };
  let text = answer.text;
  if (isGood && func.returns && text) {
    try {
      text = jsonText(plain(fromUntyped(parseJson(text), func.returns), func.returns), 2);
    } catch {
      // It is shown as it came.
    }
  }
  return { isGood, title: titles[answer.status] ?? `Failed (${answer.status})`, text, server_us, whole_ms };
}

function Course({ func }: { func: Func }): ReactNode {
  const track = useTrack();
  const { bounds, error } = useStore(metrics);
  const [span, setSpan] = useState<Span>("fine");
  const key = metricOf(func);
  if (!track) return error ? <Note>{error}</Note> : null;
  const counted = track.now.functions.get(key);
  const points = track[span];
  return (
    <>
      <div className="section-head">
        <h2>How it does</h2>
        <SpanTabs now={span} onChange={setSpan} />
      </div>
      <dl className="stats">
        <Stat name="Calls" value={whole(countOf(counted?.times))} about="since it was opened" />
        <Stat name="p50" value={micros(counted && quantile(counted.times, bounds, 0.5))} />
        <Stat name="p99" value={micros(counted && quantile(counted.times, bounds, 0.99))} />
        <Stat name="Longest" value={micros(counted?.times.longest_us)} />
        <Stat
          name="Errors"
          value={whole(counted ? errorsOf(counted) : 0)}
          about={counted ? errorText(counted.errors) : ""}
        />
      </dl>
      <Charts
        points={points}
        charts={[
          [
            "Calls and errors per second",
            rate,
            ["calls", (p) => p.functions.get(key)?.calls ?? 0],
            ["errors", (p) => p.functions.get(key)?.errors ?? 0, 3],
          ],
          [
            "Time",
            micros,
            ["p50", (p) => p.functions.get(key)?.p50_us],
            ["p99", (p) => p.functions.get(key)?.p99_us, 2],
          ],
        ]}
      />
    </>
  );
}

function errorText(errors: Record<string, number>): string {
  const parts = Object.entries(errors).filter(([, count]) => count > 0);
  return parts.map(([name, count]) => `${whole(count)} ${name}`).join(", ");
}
