// Tables and views: their rows as they are now, and what they are made of.

import { type ReactNode, useCallback, useEffect, useMemo, useState } from "react";
import { useDatabase, useTrack } from "../database";
import { Grid } from "../grid";
import { go, linkTo, place } from "../router";
import { Rows, type Sort, usualSort } from "../rows";
import type { Table } from "../schema";
import { useStore } from "../store";
import { hasLiteral, kindOf, literal, nameOf, quoted } from "../types";
import { Badge, Button, bytes, compact, Empty, Note, rate, Search, Stat, Tabs, whole } from "../ui";
import { Events } from "./events";
import { RowPanel } from "./row_panel";

/** Tables in the list, and columns in a schema. */
const LISTED_MAX = 500;

export function Tables(): ReactNode {
  const { schema, name } = useDatabase();
  const [, , , chosen] = useStore(place);
  const [letters, setLetters] = useState("");
  const track = useTrack();
  const table =
    schema.tables.find((one) => one.name === chosen) ?? (chosen === undefined ? schema.tables[0] : undefined);
  const listed = schema.tables.filter((one) => one.name.toLowerCase().includes(letters.toLowerCase()));
  if (schema.tables.length === 0) return <Empty title="This database has no tables" />;
  return (
    <div className="split">
      <aside className="list" aria-label="Tables and views">
        <div className="list-head">
          <Search
            label="Filter tables"
            placeholder="Filter tables"
            value={letters}
            onChange={setLetters}
            isFilter={!table}
          />
          <label className="only-narrow">
            <span className="visually-hidden">Table</span>
            <select
              value={table?.name ?? ""}
              onChange={(event) => go("db", name, "tables", event.target.value)}
            >
              {schema.tables.slice(0, LISTED_MAX).map((one) => (
                <option key={one.name}>{one.name}</option>
              ))}
            </select>
          </label>
        </div>
        <ul>
          {listed.slice(0, LISTED_MAX).map((one) => (
            <li key={one.name}>
              <a
                href={linkTo("db", name, "tables", one.name)}
                aria-current={one === table ? "page" : undefined}
              >
                <span className="list-name">{one.name}</span>
                {one.isView ? (
                  <Badge>view</Badge>
                ) : one.isEvent ? (
                  <Badge>event</Badge>
                ) : (
                  !one.isPublic && <Badge>private</Badge>
                )}
                <span className="list-count">
                  {one.isView || one.isEvent ? "" : countText(track?.now.tables.get(one.name)?.rows)}
                </span>
              </a>
            </li>
          ))}
        </ul>
        {listed.length > LISTED_MAX && <p className="fine">and {whole(listed.length - LISTED_MAX)} more</p>}
      </aside>
      {table ? (
        <OneTable key={table.name} table={table} />
      ) : (
        <Empty title={`There is no table “${chosen}”`} />
      )}
    </div>
  );
}

const countText = (rows: number | undefined): string => (rows === undefined ? "" : compact(rows));

function OneTable({ table }: { table: Table }): ReactNode {
  const [tab, setTab] = useState<"rows" | "schema">("rows");
  return (
    <section className="pane" aria-label={table.name}>
      <header className="pane-head">
        <h1>{table.name}</h1>
        <Badge tone={table.isPublic ? "good" : "neutral"}>{table.isPublic ? "public" : "private"}</Badge>
        {table.isView && <Badge>view</Badge>}
        {table.isEvent && <Badge>event</Badge>}
        {table.schedule && <Badge tone="accent">schedules {table.schedule.function}</Badge>}
        <Tabs
          label="What to show"
          tabs={[
            { name: "rows", text: table.isEvent ? "Events" : "Rows" },
            { name: "schema", text: "Schema" },
          ]}
          now={tab}
          onChange={setTab}
        />
      </header>
      {tab === "schema" ? (
        <TableSchema table={table} />
      ) : table.isEvent ? (
        <Events table={table} />
      ) : (
        <TableRows table={table} />
      )}
    </section>
  );
}

/** A condition that was put together from three fields, or typed. */
interface Filter {
  column: string;
  operator: string;
  value: string;
}

const SQL = "SQL condition";
const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "LIKE"];

/** The text behind WHERE; throws with what is wrong. */
function whereOf(filter: Filter, table: Table): string {
  if (filter.value.trim() === "") return "";
  if (filter.column === SQL) return filter.value;
  const column = table.columns.find(({ name }) => name === filter.column);
  if (!column) return "";
  // A word that is looked for may stand anywhere.
  const value = filter.operator === "LIKE" && !/[%_]/.test(filter.value) ? `%${filter.value}%` : filter.value;
  return `${quoted(column.name)} ${filter.operator} ${literal(value, column.type)}`;
}

function TableRows({ table }: { table: Table }): ReactNode {
  const database = useDatabase();
  const columns = table.columns.filter(({ type }) => hasLiteral(type));
  const [filter, setFilter] = useState<Filter>({ column: columns[0]?.name ?? SQL, operator: "=", value: "" });
  const [applied, setApplied] = useState("");
  const [wrong, setWrong] = useState<string>();
  const [sort, setSort] = useState<Sort | undefined>(() => usualSort(table));
  const [opened, setOpened] = useState<unknown[] | "new">();
  const rows = useRows(table, applied, sort);
  const apply = (next: Filter) => {
    try {
      setApplied(whereOf(next, table));
      setWrong(undefined);
    } catch (error) {
      setWrong(`${next.column} is compared with ${(error as Error).message}.`);
    }
  };
  const change = (part: Partial<Filter>) => {
    const next = { ...filter, ...part };
    const isText =
      kindOf(table.columns.find(({ name }) => name === next.column)?.type ?? { tag: "String" }) === "string";
    if (part.column !== undefined) next.operator = isText ? "LIKE" : "=";
    setFilter(next);
    if (next.value.trim() === "" && applied !== "") apply(next);
  };
  return (
    <>
      <form
        className="toolbar"
        onSubmit={(event) => {
          event.preventDefault();
          apply(filter);
        }}
      >
        <div className="filter">
          <select
            aria-label="Column to filter by"
            value={filter.column}
            onChange={(event) => change({ column: event.target.value })}
          >
            {columns.map(({ name }) => (
              <option key={name}>{name}</option>
            ))}
            <option>{SQL}</option>
          </select>
          {filter.column !== SQL && (
            <select
              aria-label="Comparison"
              value={filter.operator}
              onChange={(event) => change({ operator: event.target.value })}
            >
              {OPERATORS.map((one) => (
                <option key={one}>{one}</option>
              ))}
            </select>
          )}
          <input
            data-filter
            type="search"
            aria-label="Value to filter by"
            placeholder={filter.column === SQL ? "age > 30 AND name LIKE 'a%'" : "value"}
            className={filter.column === SQL ? "mono grows" : "grows"}
            value={filter.value}
            spellCheck={false}
            onChange={(event) => change({ value: event.target.value })}
          />
          <Button submit>Filter</Button>
        </div>
        {rows && <RowsStatus rows={rows} />}
        {!table.isView && (
          <Button kind="primary" icon="plus" onClick={() => setOpened("new")}>
            Insert
          </Button>
        )}
      </form>
      {wrong && <Note tone="bad">{wrong}</Note>}
      {rows && <RowsGrid table={table} rows={rows} sort={sort} onSort={setSort} onOpen={setOpened} />}
      {opened !== undefined && (
        <RowPanel
          table={table}
          row={opened === "new" ? undefined : opened}
          database={database}
          onClose={() => setOpened(undefined)}
          onDone={() => rows?.refresh()}
        />
      )}
    </>
  );
}

function useRows(table: Table, where: string, sort: Sort | undefined): Rows | undefined {
  const database = useDatabase();
  const [rows, setRows] = useState<Rows>();
  useEffect(() => {
    const made = new Rows(database, table, where, sort);
    setRows(made);
    return () => made.close();
  }, [database, table, where, sort]);
  return rows;
}

function RowsStatus({ rows }: { rows: Rows }): ReactNode {
  const { total, freshness } = useStore(rows.state);
  return (
    <div className="rows-status" role="status">
      <span>{total === undefined ? "counting" : `${whole(total)} ${total === 1 ? "row" : "rows"}`}</span>
      <span className={`dot ${freshness}`} />
      <span>{{ live: "live", polling: "every 2 s", still: "as read", loading: "loading" }[freshness]}</span>
    </div>
  );
}

function RowsGrid(props: {
  table: Table;
  rows: Rows;
  sort: Sort | undefined;
  onSort: (sort: Sort | undefined) => void;
  onOpen: (row: unknown[]) => void;
}): ReactNode {
  const { table, rows, sort } = props;
  const { total, error, reachable } = useStore(rows.state);
  const show = useCallback((first: number, last: number) => rows.show(first, last), [rows]);
  const columns = useMemo(
    () =>
      table.columns.map((column) => ({ ...column, about: nameOf(column.type), isKey: column.isPrimaryKey })),
    [table],
  );
  return (
    <>
      {error && <Note tone="bad">{error}</Note>}
      {total !== undefined && reachable < total && (
        <Note>
          In this order, the first {whole(reachable)} of {whole(total)} rows are shown.{" "}
          <button type="button" className="link" onClick={() => props.onSort(undefined)}>
            Show all as they are stored
          </button>
          , or filter.
        </Note>
      )}
      <Grid
        label={`Rows of ${table.name}`}
        columns={columns}
        count={reachable}
        row={(at) => rows.row(at)}
        isNew={(row) => rows.isNew(row)}
        onShow={show}
        sort={sort}
        onSort={(column) =>
          props.onSort({ column, isDescending: sort?.column === column && !sort.isDescending })
        }
        onOpen={(at) => {
          const row = rows.row(at);
          if (row) props.onOpen(row);
        }}
      />
      {total === 0 && !error && <p className="over-grid">No rows.</p>}
    </>
  );
}

function TableSchema({ table }: { table: Table }): ReactNode {
  const track = useTrack();
  const counted = track?.now.tables.get(table.name);
  const rates = track?.fine.at(-1)?.tables.get(table.name);
  return (
    <div className="scroll" tabIndex={-1}>
      <dl className="stats">
        <Stat name="Rows" value={counted ? whole(counted.rows) : "–"} />
        <Stat name="Size" value={bytes(counted?.bytes)} about="without indexes" />
        <Stat name="Bytes per row" value={counted?.rows ? whole(counted.bytes / counted.rows) : "–"} />
        <Stat name="Inserts" value={track ? rate(rates?.inserts ?? 0) : "–"} about="per second" />
        <Stat name="Deletes" value={track ? rate(rates?.deletes ?? 0) : "–"} about="per second" />
      </dl>
      <h2>Columns</h2>
      <div className="table-frame">
        <table>
          <thead>
            <tr>
              <th>Name</th>
              <th>Type</th>
              <th>Constraints</th>
            </tr>
          </thead>
          <tbody>
            {table.columns.slice(0, LISTED_MAX).map((column, at) => (
              <tr key={at}>
                <td className="mono">{column.name}</td>
                <td className="mono dim wraps">{nameOf(column.type)}</td>
                <td>
                  {column.isPrimaryKey && <Badge tone="accent">primary key</Badge>}{" "}
                  {column.isUnique && !column.isPrimaryKey && <Badge>unique</Badge>}{" "}
                  {column.isCounted && <Badge>auto-increment</Badge>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!table.isView && (
        <>
          <h2>Indexes</h2>
          {table.indexes.length === 0 ? (
            <p className="dim">None.</p>
          ) : (
            <div className="table-frame">
              <table>
                <thead>
                  <tr>
                    <th>Name</th>
                    <th>Columns</th>
                    <th>Kind</th>
                  </tr>
                </thead>
                <tbody>
                  {table.indexes.map((index) => (
                    <tr key={index.name}>
                      <td className="mono">{index.name}</td>
                      <td className="mono">{index.columns.join(", ")}</td>
                      <td>{index.algorithm}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )}
        </>
      )}
    </div>
  );
}
