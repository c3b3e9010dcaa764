// Operations of serial tests side by side (section 18.1): microseconds per row, a column per system, and one more for reads
// inside the server.

import { formatLatency } from "../report/format";
import type { WorkloadFile } from "./results";

/** What serial tests write beside the figures of every test. */
export interface SerialExtras {
  /** Rows that one operation of a kind is about. */
  rows_per_operation: Record<string, number>;
  /** Reads inside the server: a loop in one procedure, by the module's clock, divided by its iterations. */
  engine_hot_us: Record<string, number>;
}

const extrasOf = (file: WorkloadFile) => file.results[0]!.res.extras as Partial<SerialExtras>;

/** Empty for tests that are not serial. */
export function operationTable(files: readonly WorkloadFile[]): string {
  const serial = files.filter((file) => extrasOf(file).rows_per_operation !== undefined);
  if (serial.length === 0) return "";
  const rowsOf = new Map(serial.flatMap((file) => Object.entries(extrasOf(file).rows_per_operation!)));
  const columns = serial.flatMap((file) => {
    const { system, res } = file.results[0]!;
    const hot = extrasOf(file).engine_hot_us ?? {};
    const isCached = file.fairness.systemClass === "client-cache";
    const own = {
      title: isCached ? `${system}, reads from the client-cache` : system,
      cell: (kind: string, rows: number) => {
        const result = res.ops[kind];
        return result && result.ok > 0 ? formatLatency((result.mean_ms * 1000) / rows) : "–";
      },
    };
    if (Object.keys(hot).length === 0) return [own];
    const cell = (kind: string) => (hot[kind] === undefined ? "–" : formatLatency(hot[kind]));
    return [own, { title: `${system}, engine-hot`, cell }];
  });
  const header = ["Mean µs", ...columns.map(({ title }) => title)];
  const lines = [...rowsOf].map(([kind, rows]) => [
    rows === 1 ? kind : `${kind}, per row (${rows})`,
    ...columns.map(({ cell }) => cell(kind, rows)),
  ]);
  return [header, header.map(() => "---"), ...lines].map((cells) => `| ${cells.join(" | ")} |`).join("\n");
}
