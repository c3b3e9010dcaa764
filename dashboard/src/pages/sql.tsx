// SQL with the rights of the visitor: its rows as a table, a chart, JSON, and how they were found.

import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { messageOf } from "../api";
import { Chart } from "../chart";
import { type Database, useDatabase } from "../database";
import { Editor } from "../editor";
import { Grid } from "../grid";
import { jsonText } from "../json";
import { Plan } from "../plan";
import { session } from "../session";
import { type Result, sql, valuesOf } from "../sql";
import { Store, useStore } from "../store";
import { format, isNumeric, nameOf, plain } from "../types";
import { Button, compact, Icon, micros, Note, Tabs, whole } from "../ui";

const HISTORY_MAX = 100;
const KEPT_AS = "lightcone.dashboard.history";
/** Rows of the JSON view and of a chart. */
const JSON_ROWS_MAX = 1_000;
const CHART_ROWS_MAX = 500;

/** Texts that ran, the newest first. They stay in the browser only if the login does. */
const history = new Store<string[]>(keptHistory());
/** What stands in the editors, by database. */
const drafts = new Map<string, string>();

function keptHistory(): string[] {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT_AS) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one === "string").slice(0, HISTORY_MAX) : [];
  } catch {
    return [];
  }
}

session.subscribe(() => session.get() ?? history.set([]));

function remember(text: string): void {
  history.set([text, ...history.get().filter((one) => one !== text)].slice(0, HISTORY_MAX));
  if (session.get()?.isKept) localStorage.setItem(KEPT_AS, JSON.stringify(history.get()));
}

interface Run {
  text: string;
  result?: Result;
  plan?: string[];
  error?: string;
  whole_ms: number;
}

type View = "table" | "chart" | "json" | "plan";

function firstText(database: Database): string {
  const table = database.schema.tables.find((one) => !one.isEvent);
  return table
    ? `SELECT * FROM ${/^\w+$/.test(table.name) ? table.name : `"${table.name}"`} LIMIT 100`
    : "SELECT * FROM st_table";
}

export function Sql(): ReactNode {
  const database = useDatabase();
  const { name, token, schema } = database;
  const [text, setText] = useState(() => drafts.get(name) ?? firstText(database));
  const [run, setRun] = useState<Run>();
  const [view, setView] = useState<View>("table");
  const [isBusy, setBusy] = useState(false);
  const abort = useRef<AbortController>(undefined);
  useEffect(() => void drafts.set(name, text), [name, text]);
  useEffect(() => () => abort.current?.abort(), []);

  const execute = async (isExplained: boolean) => {
    if (text.trim() === "") return;
    abort.current?.abort();
    const { signal } = (abort.current = new AbortController());
    const wanted = isExplained && !/^\s*explain\b/i.test(text) ? `EXPLAIN ${text}` : text;
    const begun = performance.now();
    setBusy(true);
    try {
      const result = await sql(name, token, wanted, signal);
      const isPlan = /^\s*explain\b/i.test(wanted);
      const plan = isPlan ? result.rows.map((row) => String(row[0])) : undefined;
      setRun({ text: wanted, result, whole_ms: performance.now() - begun, ...(plan && { plan }) });
      if (isPlan) setView("plan");
      else if (view === "plan") setView("table");
    } catch (error) {
      if (!signal.aborted)
        setRun({ text: wanted, error: messageOf(error), whole_ms: performance.now() - begun });
    }
    if (signal.aborted) return;
    setBusy(false);
    remember(text.trim());
  };
  return (
    <div className="sql">
      <div className="sql-top">
        <h1 className="visually-hidden">SQL</h1>
        <Editor text={text} schema={schema} onChange={setText} onRun={() => void execute(false)} />
        <div className="sql-actions">
          <Button kind="primary" icon="play" disabled={isBusy} onClick={() => void execute(false)}>
            Run
          </Button>
          <Button disabled={isBusy} onClick={() => void execute(true)}>
            Explain
          </Button>
          <kbd>Ctrl Enter</kbd>
          <History onChoose={setText} />
        </div>
      </div>
      <Outcome run={run} view={view} onView={setView} />
    </div>
  );
}

function History({ onChoose }: { onChoose: (text: string) => void }): ReactNode {
  const texts = useStore(history);
  if (texts.length === 0) return null;
  return (
    <label className="history">
      <Icon name="clock" />
      <span className="visually-hidden">History</span>
      <select value="" onChange={(event) => onChoose(texts[Number(event.target.value)]!)}>
        <option value="" disabled>
          History
        </option>
        {texts.map((text, at) => (
          <option key={text} value={at}>
            {text.replace(/\s+/g, " ").slice(0, 100)}
          </option>
        ))}
      </select>
    </label>
  );
}

function Outcome({
  run,
  view,
  onView,
}: {
  run: Run | undefined;
  view: View;
  onView: (view: View) => void;
}): ReactNode {
  if (!run) return <p className="hint">Run a statement to see its rows. Explain says how they are found.</p>;
  if (run.error !== undefined) {
    return (
      <div className="outcome-area">
        <Note tone="bad">{run.error}</Note>
      </div>
    );
  }
  const result = run.result!;
  const { inserted, updated, deleted } = result.changed;
  const isChange = result.columns.length === 0;
  const tabs: { name: View; text: string }[] = run.plan
    ? [
        { name: "plan", text: "Plan" },
        { name: "table", text: "Text" },
      ]
    : [
        { name: "table", text: "Table" },
        { name: "chart", text: "Chart" },
        { name: "json", text: "JSON" },
      ];
  return (
    <div className="outcome-area">
      <div className="outcome-bar" role="status">
        {!isChange && <Tabs label="How to show the result" tabs={tabs} now={view} onChange={onView} />}
        <span className="outcome-about">
          {isChange
            ? `${whole(inserted)} inserted, ${whole(updated)} updated, ${whole(deleted)} deleted`
            : `${whole(result.rows.length)} ${result.rows.length === 1 ? "row" : "rows"}`}
          {result.micros !== undefined && `, ${micros(result.micros)} in the database`},{" "}
          {run.whole_ms.toFixed(0)} ms in all
        </span>
      </div>
      {!isChange && <ResultView run={run} result={result} view={view} />}
    </div>
  );
}

function ResultView({ run, result, view }: { run: Run; result: Result; view: View }): ReactNode {
  const columns = useMemo(() => result.columns.map((one) => ({ ...one, about: nameOf(one.type) })), [result]);
  if (view === "plan" && run.plan) {
    return (
      <div className="scroll">
        <Plan lines={run.plan} />
      </div>
    );
  }
  if (run.plan) return <pre className="scroll plan-text">{run.plan.join("\n")}</pre>;
  if (view === "chart") return <ResultChart result={result} />;
  if (view === "json") {
    const shown = result.rows.slice(0, JSON_ROWS_MAX).map((row) => {
      const values = valuesOf(row, result.columns);
      const fields = result.columns.map(({ name, type }, at) => [name, plain(values[at], type)]);
      return Object.assign(Object.create(null), Object.fromEntries(fields));
    });
    const isCut = result.rows.length > JSON_ROWS_MAX;
    return (
      <pre className="scroll json" tabIndex={0}>
        {jsonText(shown, 2)}
        {isCut && `\n… ${whole(result.rows.length - JSON_ROWS_MAX)} more rows`}
      </pre>
    );
  }
  return (
    <Grid
      label="Result"
      columns={columns}
      count={result.rows.length}
      row={(at) => valuesOf(result.rows[at]!, result.columns)}
    />
  );
}

function ResultChart({ result }: { result: Result }): ReactNode {
  const numeric = result.columns.flatMap((column, at) => (isNumeric(column.type) ? [at] : []));
  const firstText = result.columns.findIndex((column) => !isNumeric(column.type));
  const [label, setLabel] = useState(firstText >= 0 ? firstText : 0);
  const [chosen, setChosen] = useState<number[]>(() => numeric.filter((at) => at !== label).slice(0, 2));
  const [isBars, setBars] = useState(result.rows.length <= 40);
  if (numeric.length === 0) return <p className="hint">A chart needs a column of numbers.</p>;
  const rows = result.rows.slice(0, CHART_ROWS_MAX).map((row) => valuesOf(row, result.columns));
  const series = chosen.slice(0, 4).map((at) => ({
    name: result.columns[at]!.name,
    values: rows.map((row) => (Number.isFinite(Number(row[at])) ? Number(row[at]) : undefined)),
  }));
  return (
    <div className="scroll result-chart">
      <div className="toolbar">
        <label>
          Along{" "}
          <select value={label} onChange={(event) => setLabel(Number(event.target.value))}>
            {result.columns.map((column, at) => (
              <option key={at} value={at}>
                {column.name}
              </option>
            ))}
          </select>
        </label>
        {numeric.slice(0, 12).map((at) => (
          <label key={at} className="check">
            <input
              type="checkbox"
              checked={chosen.includes(at)}
              onChange={(event) =>
                setChosen(event.target.checked ? [...chosen, at] : chosen.filter((one) => one !== at))
              }
            />
            {result.columns[at]!.name}
          </label>
        ))}
        <label className="check">
          <input type="checkbox" checked={isBars} onChange={(event) => setBars(event.target.checked)} />
          bars
        </label>
      </div>
      <Chart
        title={result.rows.length > CHART_ROWS_MAX ? `The first ${CHART_ROWS_MAX} rows` : "All rows"}
        times={rows.map((_, at) => at)}
        at={(at) => format(rows[at]?.[label], result.columns[label]!.type).slice(0, 40)}
        series={series}
        format={compact}
        height={300}
        isBars={isBars}
      />
    </div>
  );
}
