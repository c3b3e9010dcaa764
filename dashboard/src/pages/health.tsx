// How the server and a database are: processors, memory, log, queues.

import { type ReactNode, useState } from "react";
import { Chart } from "../chart";
import { type Counted, countOf, metrics, type Point, type ServerPoint, trackOf } from "../metrics";
import { largest, type Samples, sum } from "../prometheus";
import { place } from "../router";
import { useStore } from "../store";
import { Badge, bytes, Empty, Head, Loading, micros, Note, rate, Stat, Tabs, whole } from "../ui";

type Span = "fine" | "coarse";

export function Health(): ReactNode {
  const [first, name] = useStore(place);
  const all = useStore(metrics);
  const [span, setSpan] = useState<Span>("fine");
  const track = first === "db" && name !== undefined ? trackOf(all, name) : undefined;
  const isOfDatabase = first === "db";
  return (
    <div className="scroll page">
      <Head
        title={isOfDatabase ? "Health" : "Server"}
        about="The last minutes since this page was opened; the last hours since the server was started."
      >
        <Tabs
          label="Span"
          tabs={[
            { name: "fine", text: "15 minutes" },
            { name: "coarse", text: "6 hours" },
          ]}
          now={span}
          onChange={setSpan}
        />
      </Head>
      {isOfDatabase &&
        (track ? (
          <DatabaseHealth now={track.now} points={track[span]} />
        ) : all.error ? (
          <Note tone="bad">{all.error}</Note>
        ) : (
          <Loading />
        ))}
      {isOfDatabase && all.server && <h2>The whole server</h2>}
      {all.server ? (
        <ServerHealth now={all.server.now} points={all.server[span]} />
      ) : all.isServerOpen === false ? (
        <Empty title="The server tells about itself to programs on its own machine only">
          Elsewhere, Prometheus reads it with <code>metrics.token</code>.
        </Empty>
      ) : (
        !isOfDatabase && <Loading />
      )}
    </div>
  );
}

function DatabaseHealth({ now, points }: { now: Counted; points: Point[] }): ReactNode {
  const times = points.map((point) => point.at);
  const of = (pick: (point: Point) => number | undefined) => points.map(pick);
  const last = points.at(-1);
  return (
    <>
      <dl className="stats">
        <Stat
          name="State"
          value={
            now.isReadOnly ? (
              <Badge tone="bad">read-only</Badge>
            ) : now.isOpen ? (
              <Badge tone="good">open</Badge>
            ) : (
              <Badge>closed</Badge>
            )
          }
        />
        <Stat name="Connections" value={whole(now.numbers["clients"] ?? 0)} />
        <Stat name="Transactions" value={rate(last?.transactions)} about="per second" />
        <Stat
          name="Log"
          value={bytes(now.numbers["log_bytes"])}
          about={`${rate(last?.syncs)} syncs per second`}
        />
        <Stat name="Longest round" value={micros(now.times["rounds"]?.longest_us)} about="of the writer" />
        <Stat name="Cut clients" value={whole(now.numbers["slow_clients_cut"] ?? 0)} about="too slow" />
      </dl>
      <div className="charts">
        <Chart
          title="Transactions and queries per second"
          times={times}
          format={rate}
          series={[
            { name: "transactions", values: of((p) => p.transactions) },
            { name: "queries", values: of((p) => p.queries), tone: 1 },
          ]}
        />
        <Chart
          title="Time of calls"
          times={times}
          format={micros}
          series={[
            { name: "p50", values: of((p) => p.p50_us) },
            { name: "p99", values: of((p) => p.p99_us), tone: 2 },
          ]}
        />
        <Chart
          title="Writer, 99 of 100"
          times={times}
          format={micros}
          series={[
            { name: "calls wait", values: of((p) => p.wait99_us) },
            { name: "rounds take", values: of((p) => p.round99_us), tone: 2 },
          ]}
        />
        <Chart
          title="Queues"
          times={times}
          format={whole}
          series={[
            { name: "inbox", values: of((p) => p.inbox) },
            { name: "reads under way", values: of((p) => p.reads), tone: 1 },
          ]}
        />
        <Chart
          title="Log written, per second"
          times={times}
          format={bytes}
          series={[
            { name: "log", values: of((p) => p.logBytes) },
            { name: "queue for the disk", values: of((p) => p.logQueue), tone: 2 },
          ]}
        />
        <Chart
          title="Traffic, per second"
          times={times}
          format={bytes}
          series={[
            { name: "received", values: of((p) => p.received) },
            { name: "sent", values: of((p) => p.sent), tone: 1 },
          ]}
        />
        <Chart
          title="Rows written, per second"
          times={times}
          format={rate}
          series={[
            { name: "inserts", values: of((p) => p.inserts) },
            { name: "deletes", values: of((p) => p.deletes), tone: 3 },
          ]}
        />
        <Chart
          title="Connections"
          times={times}
          format={whole}
          series={[{ name: "connections", values: of((p) => p.clients) }]}
        />
      </div>
    </>
  );
}

function ServerHealth({ now, points }: { now: Samples; points: ServerPoint[] }): ReactNode {
  const times = points.map((point) => point.at);
  const of = (pick: (point: ServerPoint) => number | undefined) => points.map(pick);
  const started = sum(now, "process_start_time_seconds");
  const snapshots = sum(now, "lightcone_snapshot_seconds_count");
  return (
    <>
      <dl className="stats">
        <Stat
          name="Processor"
          value={points.length > 0 ? `${points.at(-1)!.cpu.toFixed(0)} %` : "–"}
          about="of one"
        />
        <Stat name="Memory" value={bytes(sum(now, "process_resident_memory_bytes"))} />
        <Stat
          name="Connections"
          value={whole(sum(now, "lightcone_connections"))}
          about={`${whole(sum(now, "lightcone_connections_refused_total"))} refused`}
        />
        <Stat
          name="Disk free"
          value={bytes(sum(now, "lightcone_disk_free_bytes"))}
          about={`${bytes(sum(now, "lightcone_disk_reserve_bytes"))} reserved`}
        />
        <Stat
          name="Files open"
          value={whole(sum(now, "process_open_fds"))}
          about={`of ${whole(sum(now, "process_max_fds"))}`}
        />
        <Stat name="Up" value={started > 0 ? upText(Date.now() / 1000 - started) : "–"} />
      </dl>
      <div className="charts">
        <Chart
          title="Processor"
          times={times}
          format={(value) => `${value.toFixed(0)} %`}
          series={[{ name: "processor", values: of((p) => p.cpu) }]}
        />
        <Chart
          title="Memory"
          times={times}
          format={bytes}
          series={[{ name: "memory", values: of((p) => p.memory), tone: 1 }]}
        />
        <Chart
          title="Syncs of logs per second"
          times={times}
          format={rate}
          series={[{ name: "syncs", values: of((p) => p.syncs) }]}
        />
        <Chart
          title="Connections"
          times={times}
          format={whole}
          series={[{ name: "connections", values: of((p) => p.connections) }]}
        />
      </div>
      <h2>Where the memory is</h2>
      <Memory now={now} />
      <h2>Snapshots and replay</h2>
      <dl className="stats">
        <Stat
          name="Snapshots"
          value={whole(snapshots)}
          about={`${whole(sum(now, "lightcone_snapshots_failed_total"))} failed`}
        />
        <Stat
          name="A snapshot takes"
          value={snapshots > 0 ? micros((sum(now, "lightcone_snapshot_seconds_sum") / snapshots) * 1e6) : "–"}
          about="mean"
        />
        <Stat name="Written" value={bytes(sum(now, "lightcone_snapshot_bytes_total"))} />
        <Stat
          name="Longest replay"
          value={micros(largest(now, "lightcone_replay_seconds") * 1e6)}
          about="at opening"
        />
        <Stat
          name="Slow polls"
          value={whole(sum(now, "lightcone_network_polls_slow_total"))}
          about="of the network"
        />
      </dl>
    </>
  );
}

function upText(seconds: number): string {
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${(seconds / 3600).toFixed(1)} h` : `${Math.round(seconds / 86_400)} days`;
}

/** Shares of the resident memory, as far as the server counts them. */
function Memory({ now }: { now: Samples }): ReactNode {
  const whole_bytes = sum(now, "process_resident_memory_bytes");
  const parts = [
    { name: "rows of tables", size: sum(now, "spacetime_table_size_bytes") },
    { name: "module instances", size: sum(now, "spacetime_worker_wasm_memory_bytes") },
    { name: "procedures", size: sum(now, "lightcone_procedure_memory_bytes") },
    { name: "clients", size: sum(now, "lightcone_clients_bytes") },
    { name: "queues of logs", size: sum(now, "lightcone_log_queue_bytes") },
  ];
  const known = parts.reduce((all, part) => all + part.size, 0);
  const shown = [
    ...parts,
    { name: "all else: program, code, indexes", size: Math.max(0, whole_bytes - known) },
  ];
  const most = Math.max(whole_bytes, known, 1);
  return (
    <ul className="shares">
      {shown.map((part, at) => (
        <li key={part.name}>
          <span>{part.name}</span>
          <svg width="100%" height="6" aria-hidden="true" focusable="false">
            <rect className="share-room" width="100%" height="6" rx="3" />
            <rect
              className={`share tone-${at % 4}`}
              width={`${(part.size / most) * 100}%`}
              height="6"
              rx="3"
            />
          </svg>
          <output>{bytes(part.size)}</output>
        </li>
      ))}
    </ul>
  );
}

export const callsOf = (now: Counted): number =>
  [...now.functions.values()].reduce((all, one) => all + countOf(one.times), 0);
