// Subscriptions: how many there are, what they cost the server, and which tables keep them busy.

import type { ReactNode } from "react";
import { Chart } from "../chart";
import { useDatabase, useTrack } from "../database";
import { countOf, metrics, type Point, quantile } from "../metrics";
import { linkTo } from "../router";
import { useStore } from "../store";
import { bytes, Empty, Head, Loading, micros, Note, rate, Stat, whole } from "../ui";

const TABLES_MAX = 20;

export function LiveQueries(): ReactNode {
  const { name } = useDatabase();
  const track = useTrack();
  const { bounds, error } = useStore(metrics);
  if (!track)
    return <div className="scroll page">{error ? <Note tone="bad">{error}</Note> : <Loading />}</div>;
  const { now, fine } = track;
  const last = fine.at(-1);
  const times = fine.map((point) => point.at);
  const of = (pick: (point: Point) => number | undefined) => fine.map(pick);
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
      <div className="charts">
        <Chart
          title="Live queries and connections"
          times={times}
          format={whole}
          series={[
            { name: "queries", values: of((p) => p.liveQueries) },
            { name: "connections", values: of((p) => p.clients), tone: 1 },
          ]}
        />
        <Chart
          title="Messages to subscribers per second"
          times={times}
          format={rate}
          series={[{ name: "messages", values: of((p) => p.sentMessages) }]}
        />
        <Chart
          title="Rows changed per second"
          times={times}
          format={rate}
          series={[
            { name: "inserts", values: of((p) => p.inserts) },
            { name: "deletes", values: of((p) => p.deletes), tone: 3 },
          ]}
        />
        <Chart
          title="A round of the writer, evaluation included"
          times={times}
          format={micros}
          series={[{ name: "99 of 100", values: of((p) => p.round99_us), tone: 2 }]}
        />
      </div>
      <h2>What requests cost the writer</h2>
      <div className="table-frame" tabIndex={0} role="region" aria-label="Requests">
        <table>
          <thead>
            <tr>
              <th>Request</th>
              <th className="right">Count</th>
              <th className="right">p50</th>
              <th className="right">p99</th>
              <th className="right">Longest</th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(now.queries).map(([kind, one]) => (
              <tr key={kind}>
                <td>{kind.replaceAll("_", " ")}</td>
                <td className="right">{whole(countOf(one))}</td>
                <td className="right">{micros(quantile(one, bounds, 0.5))}</td>
                <td className="right">{micros(quantile(one, bounds, 0.99))}</td>
                <td className="right">{micros(one.longest_us || undefined)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Tables that change now</h2>
      {busy.length === 0 ? (
        <Empty title="Nothing has changed in the last two seconds" />
      ) : (
        <div className="table-frame" tabIndex={0} role="region" aria-label="Tables that change">
          <table>
            <thead>
              <tr>
                <th>Table</th>
                <th className="right">Inserts/s</th>
                <th className="right">Deletes/s</th>
              </tr>
            </thead>
            <tbody>
              {busy.slice(0, TABLES_MAX).map(([table, rates]) => (
                <tr key={table}>
                  <td>
                    <a href={linkTo("db", name, "tables", table)}>{table}</a>
                  </td>
                  <td className="right">{rate(rates.inserts)}</td>
                  <td className="right">{rate(rates.deletes)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}
