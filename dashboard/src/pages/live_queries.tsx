// Subscriptions: how many there are, what they cost the server, and which tables keep them busy.

import { type ReactNode, useRef } from "react";
import * as api from "../api";
import { Charts } from "../chart";
import { useDatabase, useTrack } from "../database";
import { isObject, type Json } from "../json";
import { countOf, metrics, quantile } from "../metrics";
import { linkTo } from "../router";
import { useStore } from "../store";
import {
  Badge,
  bytes,
  Empty,
  Head,
  Loading,
  micros,
  Note,
  rate,
  Stat,
  useLoaded,
  useTick,
  whole,
} from "../ui";

const TABLES_MAX = 20;

export function LiveQueries(): ReactNode {
  const { name } = useDatabase();
  const track = useTrack();
  const { bounds, error } = useStore(metrics);
  if (!track)
    return <div className="scroll page">{error ? <Note tone="bad">{error}</Note> : <Loading />}</div>;
  const { now, fine } = track;
  const last = fine.at(-1);
  const busy = [...(last?.tables ?? [])].sort(
    ([, a], [, b]) => b.inserts + b.deletes - a.inserts - a.deletes,
  );
  const changed = last ? last.inserts + last.deletes : 0;
  return (
    <div className="scroll page">
      <Head
        title="Live queries"
        about="Queries that clients are subscribed to. Equal ones are evaluated once."
      />
      <dl className="stats">
        <Stat name="Queries" value={whole(now.numbers["live_queries"] ?? 0)} about="different ones" />
        <Stat name="Subscribers" value={whole(now.numbers["clients"] ?? 0)} about="connections" />
        <Stat name="Rows changed" value={rate(changed)} about="per second" />
        <Stat name="Messages sent" value={rate(last?.sentMessages)} about="per second" />
        <Stat name="Bytes sent" value={bytes(last?.sent)} about="per second" />
        <Stat
          name="Cut clients"
          value={whole(now.numbers["slow_clients_cut"] ?? 0)}
          about="took too little"
        />
      </dl>
      <Charts
        points={fine}
        charts={[
          [
            "Live queries and connections",
            whole,
            ["queries", (p) => p.liveQueries],
            ["connections", (p) => p.clients, 1],
          ],
          ["Messages to subscribers per second", rate, ["messages", (p) => p.sentMessages]],
          ["Rows changed per second", rate, ["inserts", (p) => p.inserts], ["deletes", (p) => p.deletes, 3]],
          ["A round of the writer, evaluation included", micros, ["99 of 100", (p) => p.round99_us, 2]],
        ]}
      />
      <Shapes />
      <h2>What requests cost the writer</h2>
      <Numbers label="Requests" heads={["Request", "Count", "p50", "p99", "Longest"]}>
        {Object.entries(now.queries).map(([kind, one]) => (
          <tr key={kind}>
            <td>{kind.replaceAll("_", " ")}</td>
            <td className="right">{whole(countOf(one))}</td>
            <td className="right">{micros(quantile(one, bounds, 0.5))}</td>
            <td className="right">{micros(quantile(one, bounds, 0.99))}</td>
            <td className="right">{micros(one.longest_us || undefined)}</td>
          </tr>
        ))}
      </Numbers>
      <h2>Tables that change now</h2>
      {busy.length === 0 ? (
        <Empty title="Nothing has changed in the last two seconds" />
      ) : (
        <Numbers label="Tables that change" heads={["Table", "Inserts/s", "Deletes/s"]}>
          {busy.slice(0, TABLES_MAX).map(([table, rates]) => (
            <tr key={table}>
              <td>
                <a href={linkTo("db", name, "tables", table)}>{table}</a>
              </td>
              <td className="right">{rate(rates.inserts)}</td>
              <td className="right">{rate(rates.deletes)}</td>
            </tr>
          ))}
        </Numbers>
      )}
    </div>
  );
}

interface Shape {
  table: string;
  kind: string;
  by: string | undefined;
  isFiltered: boolean;
  queries: number;
  subscribers: number;
  changes: number;
  rows: number;
  change_us: number | undefined;
}

function shapeOf(json: Json): Shape {
  const of = isObject(json) ? json : {};
  const number = (name: string) => Number(of[name] ?? 0);
  return {
    table: String(of["table"]),
    kind: String(of["kind"]),
    by: typeof of["by"] === "string" ? of["by"] : undefined,
    isFiltered: of["is_filtered"] === true,
    queries: number("queries"),
    subscribers: number("subscribers"),
    changes: number("changes"),
    rows: number("changed_rows"),
    change_us: typeof of["change_ns"] === "number" ? of["change_ns"] / 1000 : undefined,
  };
}

const keyOf = (shape: Shape): string =>
  `${shape.table}\u0000${shape.kind}\u0000${shape.by}\u0000${shape.isFiltered}`;

/** What is subscribed to, without the values: many queries are of few shapes. */
function Shapes(): ReactNode {
  const { name, token } = useDatabase();
  const before = useRef<{ at: number; shapes: Map<string, Shape> }>(undefined);
  const loaded = useLoaded(async () => {
    const answer = await api.json(`database/${api.part(name)}/queries`, { token });
    const listed = isObject(answer) && Array.isArray(answer["queries"]) ? answer["queries"].map(shapeOf) : [];
    const old = before.current;
    const at = performance.now();
    before.current = { at, shapes: new Map(listed.map((shape) => [keyOf(shape), shape])) };
    const seconds = old ? (at - old.at) / 1000 : Number.NaN;
    const rates = listed.map((shape) => {
      const then = old?.shapes.get(keyOf(shape));
      return then ? Math.max(0, shape.rows - then.rows) / seconds : undefined;
    });
    return { listed, rates, isWhole: isObject(answer) && answer["is_whole"] === true };
  }, [name, token]);
  useTick(loaded.reload, 2_000);
  if (loaded.error) return <Note tone="bad">{loaded.error}</Note>;
  const { listed = [], rates = [], isWhole = true } = loaded.value ?? {};
  return (
    <>
      <h2>What clients are subscribed to</h2>
      {listed.length === 0 ? (
        <p className="dim">Nothing.</p>
      ) : (
        <Numbers
          label="Shapes of live queries"
          heads={[
            "Shape",
            "Queries",
            "Subscribers",
            "Changes",
            "Rows per change",
            "Rows/s",
            "Time per change",
          ]}
          isShort
        >
          {listed.map((shape, at) => (
            <tr key={keyOf(shape)}>
              <td>
                <span className="mono">
                  {shape.table}
                  {shape.by !== undefined && ` where ${shape.by} = …`}
                </span>{" "}
                {shape.kind !== "rows" && <Badge tone="accent">{shape.kind}</Badge>}{" "}
                {shape.isFiltered && <Badge>more conditions</Badge>}
              </td>
              <td className="right">{whole(shape.queries)}</td>
              <td className="right">{whole(shape.subscribers)}</td>
              <td className="right">{whole(shape.changes)}</td>
              <td className="right">{shape.changes > 0 ? rate(shape.rows / shape.changes) : "–"}</td>
              <td className="right">{rate(rates[at])}</td>
              <td className="right">{micros(shape.change_us)}</td>
            </tr>
          ))}
        </Numbers>
      )}
      {!isWhole && <p className="fine">There are more than are listed or counted here.</p>}
    </>
  );
}

/** A table of numbers; the first column says what they are of. */
function Numbers(props: {
  label: string;
  heads: string[];
  isShort?: boolean;
  children: ReactNode;
}): ReactNode {
  return (
    <div
      className={props.isShort ? "table-frame short" : "table-frame"}
      tabIndex={0}
      role="region"
      aria-label={props.label}
    >
      <table>
        <thead>
          <tr>
            {props.heads.map((head, at) => (
              <th key={head} className={at > 0 ? "right" : undefined}>
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
    </div>
  );
}
