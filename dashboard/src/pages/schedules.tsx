// What is due, what has run, and what failed: the rows of scheduled tables, and what is counted and logged of their functions.

import { type ReactNode, useState } from "react";
import { useDatabase, useTrack } from "../database";
import { type Line, lastLogs } from "../logs";
import { countOf, errorsOf, metrics, quantile } from "../metrics";
import { linkTo } from "../router";
import type { Table } from "../schema";
import { type Result, sql, valuesOf } from "../sql";
import { useStore } from "../store";
import { durationText, format, quoted } from "../types";
import { Badge, clock, Empty, Head, Loading, micros, Note, Stat, useLoaded, useTick, whole } from "../ui";

/** Rows of a table that are shown, those that are due first. */
const ROWS_MAX = 200;
const LOG_LINES = 1_000;
const FAILURES_MAX = 20;

export function Schedules(): ReactNode {
  const { schema, name, token } = useDatabase();
  const scheduled = schema.tables.filter((table) => table.schedule);
  const logs = useLoaded(
    () => (scheduled.length > 0 ? lastLogs(name, token, LOG_LINES) : Promise.resolve([])),
    [name, token],
  );
  useTick(logs.reload, 10_000);
  return (
    <div className="scroll page">
      <Head title="Schedules" about="Functions that the database calls at their time." />
      {scheduled.length === 0 && <Empty title="This database has no scheduled tables" />}
      {scheduled.map((table) => (
        <Schedule key={table.name} table={table} lines={logs.value ?? []} />
      ))}
    </div>
  );
}

interface Due {
  when: bigint | undefined;
  every: bigint | undefined;
  row: unknown[];
}

function dueOf(row: unknown[], column: number): Due {
  const value = row[column] as { tag?: string; value?: object } | undefined;
  const inner: unknown = value?.value ? Object.values(value.value)[0] : undefined;
  const micros = typeof inner === "bigint" ? inner : undefined;
  return {
    row,
    when: value?.tag === "Time" ? micros : undefined,
    every: value?.tag === "Interval" ? micros : undefined,
  };
}

function Schedule({ table, lines }: { table: Table; lines: Line[] }): ReactNode {
  const { name, token, schema } = useDatabase();
  const track = useTrack();
  const { bounds } = useStore(metrics);
  const [now, setNow] = useState(Date.now());
  const schedule = table.schedule!;
  const rows = useLoaded<Result>(
    () => sql(name, token, `SELECT * FROM ${quoted(table.name)} LIMIT ${ROWS_MAX}`),
    [name, token, table],
  );
  useTick(() => {
    setNow(Date.now());
    rows.reload();
  }, 2_000);
  const func = schema.functions.find((one) => one.name === schedule.function);
  const counted = ["reducer", "procedure"]
    .map((kind) => track?.now.functions.get(`${kind} ${schedule.function}`))
    .find(Boolean);
  const failures = lines
    .filter((line) => line.func === schedule.function && ["Error", "Panic"].includes(line.level))
    .slice(-FAILURES_MAX)
    .reverse();
  const due = (rows.value?.rows ?? []).map((row) => dueOf(valuesOf(row, table.columns), schedule.column));
  due.sort((a, b) => Number((a.when ?? 0n) - (b.when ?? 0n)));
  return (
    <section className="card" aria-label={table.name}>
      <header className="card-head">
        <h2>
          <a href={linkTo("db", name, "functions", func?.kind ?? "reducer", schedule.function)}>
            {schedule.function}
          </a>
        </h2>
        <span className="dim">
          by rows of <a href={linkTo("db", name, "tables", table.name)}>{table.name}</a>
        </span>
      </header>
      <dl className="stats">
        <Stat
          name="Due"
          value={
            track?.now.tables.has(table.name)
              ? whole(track.now.tables.get(table.name)!.rows)
              : whole(due.length)
          }
          about="rows that wait"
        />
        <Stat name="Ran" value={counted ? whole(countOf(counted.times)) : "–"} about="since it was opened" />
        <Stat name="Failed" value={counted ? whole(errorsOf(counted)) : "–"} />
        <Stat name="p99" value={micros(counted && quantile(counted.times, bounds, 0.99))} />
      </dl>
      {rows.error && <Note tone="bad">{rows.error}</Note>}
      {!rows.value && !rows.error && <Loading />}
      {due.length > 0 && (
        <div className="table-frame short" tabIndex={0} role="region" aria-label={`Due of ${table.name}`}>
          <table>
            <thead>
              <tr>
                <th>When</th>
                {table.columns.map((column, at) => at !== schedule.column && <th key={at}>{column.name}</th>)}
              </tr>
            </thead>
            <tbody>
              {due.map((one, at) => (
                <tr key={at}>
                  <td>{whenText(one, now)}</td>
                  {table.columns.map(
                    (column, index) =>
                      index !== schedule.column && (
                        <td key={index} className="mono cut">
                          {format(one.row[index], column.type).slice(0, 120)}
                        </td>
                      ),
                  )}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {failures.length > 0 && (
        <>
          <h3>Failed lately</h3>
          <ul className="failures">
            {failures.map((line) => (
              <li key={line.id}>
                <time>{clock(line.at)}</time> <Badge tone="bad">{line.level}</Badge>{" "}
                <span>{line.message.slice(0, 400)}</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function whenText({ when, every }: Due, now: number): ReactNode {
  if (every !== undefined) return <>every {durationText(every)}</>;
  if (when === undefined) return "–";
  const seconds = Number(when / 1000n) / 1000 - now / 1000;
  const text = seconds > 0 ? `in ${durationText(BigInt(Math.round(seconds)) * 1_000_000n)}` : "now";
  return <time title={new Date(Number(when / 1000n)).toISOString()}>{text}</time>;
}
