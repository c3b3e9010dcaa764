// Rows of an event table: they come, and are stored nowhere. The newest are kept on the screen.

import { type ReactNode, useEffect, useMemo, useState } from "react";
import { useDatabase } from "../database";
import { Grid } from "../grid";
import type { Table } from "../schema";
import { nameOf } from "../types";
import { Note } from "../ui";

const EVENTS_MAX = 1_000;

export function Events({ table }: { table: Table }): ReactNode {
  const { live } = useDatabase();
  const [rows, setRows] = useState<unknown[][]>([]);
  const [error, setError] = useState<string>();
  useEffect(() => {
    const came = (row: unknown[]) => setRows((before) => [row, ...before].slice(0, EVENTS_MAX));
    return live.followEvents(table, came, setError);
  }, [live, table]);
  const columns = useMemo(() => table.columns.map((one) => ({ ...one, about: nameOf(one.type) })), [table]);
  return (
    <>
      {error && <Note tone="bad">{error}</Note>}
      <Grid label={`Events of ${table.name}`} columns={columns} count={rows.length} row={(at) => rows[at]} />
      {rows.length === 0 && <p className="over-grid">Waiting for events. They are stored nowhere.</p>}
    </>
  );
}
