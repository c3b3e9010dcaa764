// How the server and a database are: processors, memory, log, queues.

import { type ReactNode, useState } from "react";
import { Charts, type Span, SpanTabs } from "../chart";
import { type Counted, countOf, metrics, type Point, type ServerPoint, trackOf } from "../metrics";
import { largest, type Samples, sum } from "../prometheus";
import { place } from "../router";
import { useStore } from "../store";
import { Badge, bytes, Empty, Head, Loading, micros, Note, rate, Stat, whole } from "../ui";

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
        <SpanTabs now={span} onChange={setSpan} />
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
      <Charts
        points={points}
        charts={[
          [
            "Transactions and queries per second",
            rate,
            ["transactions", (p) => p.transactions],
            ["queries", (p) => p.queries, 1],
          ],
          ["Time of calls", micros, ["p50", (p) => p.p50_us], ["p99", (p) => p.p99_us, 2]],
          [
            "Writer, 99 of 100",
            micros,
            ["calls wait", (p) => p.wait99_us],
            ["rounds take", (p) => p.round99_us, 2],
          ],
          ["Queues", whole, ["inbox", (p) => p.inbox], ["reads under way", (p) => p.reads, 1]],
          [
            "Log written, per second",
            bytes,
            ["log", (p) => p.logBytes],
            ["queue for the disk", (p) => p.logQueue, 2],
          ],
          ["Traffic, per second", bytes, ["received", (p) => p.received], ["sent", (p) => p.sent, 1]],
          ["Rows written, per second", rate, ["inserts", (p) => p.inserts], ["deletes", (p) => p.deletes, 3]],
          ["Connections", whole, ["connections", (p) => p.clients]],
        ]}
      />
    </>
  );
}

function ServerHealth({ now, points }: { now: Samples; points: ServerPoint[] }): ReactNode {
  const started = sum(now, "process_start_time_seconds");
  const snapshots = sum(now, "lightcone_snapshot_seconds_count");
  const damaged = sum(now, "lightcone_scrub_damaged");
  return (
    <>
      {damaged > 0 && (
        <Note tone="bad">
          {whole(damaged)} damaged files that a start of the server would need. Its log names them with
          LC0529.
        </Note>
      )}
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
      <Charts
        points={points}
        charts={[
          ["Processor", (value) => `${value.toFixed(0)} %`, ["processor", (p) => p.cpu]],
          ["Memory", bytes, ["memory", (p) => p.memory, 1]],
          ["Syncs of logs per second", rate, ["syncs", (p) => p.syncs]],
          ["Connections", whole, ["connections", (p) => p.connections]],
        ]}
      />
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
