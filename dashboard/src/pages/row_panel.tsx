// One row in full: to read it, change it, delete it, or write a new one. All through SQL, which is shown before it runs.

import { type ReactNode, useId, useState } from "react";
import { messageOf } from "../api";
import type { Database } from "../database";
import type { Column, Table } from "../schema";
import { sql } from "../sql";
import { format, hasLiteral, kindOf, literal, nameOf, quoted } from "../types";
import { Badge, Button, Dialog, Note } from "../ui";

interface Props {
  table: Table;
  /** undefined: a new one. */
  row: unknown[] | undefined;
  database: Database;
  onClose: () => void;
  onDone: () => void;
}

const usualText = (column: Column): string => {
  if (column.isCounted) return "0";
  return { bool: "false", integer: "0", float: "0" }[kindOf(column.type) as string] ?? "";
};

/** The condition that finds this row and no other one; undefined if SQL has none. */
function whereOf(table: Table, row: unknown[]): string | undefined {
  const key = table.columns.findIndex(({ isUnique, type }) => isUnique && hasLiteral(type));
  const wanted = key >= 0 ? [key] : table.columns.map((_, at) => at);
  if (!wanted.every((at) => hasLiteral(table.columns[at]!.type))) return undefined;
  try {
    const parts = wanted.map((at) => {
      const { name, type } = table.columns[at]!;
      return `${quoted(name)} = ${literal(format(row[at], type), type)}`;
    });
    return parts.join(" AND ");
  } catch {
    // A float that is no number has no literal.
    return undefined;
  }
}

function statementOf(
  { table, row }: Props,
  texts: string[],
): { statement?: string; wrong: Map<number, string> } {
  const wrong = new Map<number, string>();
  const literals = table.columns.map(({ type }, at) => {
    try {
      return hasLiteral(type) ? literal(texts[at]!, type) : undefined;
    } catch (error) {
      wrong.set(at, (error as Error).message);
      return undefined;
    }
  });
  const names = table.columns.map(({ name }) => quoted(name));
  if (row === undefined) {
    if (literals.some((one) => one === undefined)) return { wrong };
    return {
      statement: `INSERT INTO ${quoted(table.name)} (${names.join(", ")}) VALUES (${literals.join(", ")})`,
      wrong,
    };
  }
  const changed = names.flatMap((name, at) => {
    const isSame = texts[at] === format(row[at], table.columns[at]!.type);
    return isSame || literals[at] === undefined ? [] : [`${name} = ${literals[at]}`];
  });
  const where = whereOf(table, row);
  if (changed.length === 0 || where === undefined) return { wrong };
  return { statement: `UPDATE ${quoted(table.name)} SET ${changed.join(", ")} WHERE ${where}`, wrong };
}

export function RowPanel(props: Props): ReactNode {
  const { table, row, database } = props;
  const [texts, setTexts] = useState(() =>
    table.columns.map((column, at) => (row ? format(row[at], column.type) : usualText(column))),
  );
  const [error, setError] = useState<string>();
  const [isDeleting, setDeleting] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const { statement, wrong } = statementOf(props, texts);
  const where = row && whereOf(table, row);
  const missing = table.columns.filter(({ type }) => !hasLiteral(type));
  const run = async (text: string) => {
    setBusy(true);
    try {
      await sql(database.name, database.token, text);
      props.onDone();
      props.onClose();
    } catch (failure) {
      setError(messageOf(failure));
      setBusy(false);
    }
  };
  const canEdit = !table.isView && (row === undefined ? missing.length === 0 : where !== undefined);
  const shown = isDeleting ? `DELETE FROM ${quoted(table.name)} WHERE ${where}` : statement;
  return (
    <Dialog title={row ? `Row of ${table.name}` : `Insert into ${table.name}`} onClose={props.onClose} isSide>
      <form
        className="panel-form"
        onSubmit={(event) => {
          event.preventDefault();
          if (shown && !isBusy) void run(shown);
        }}
      >
        {row === undefined && missing.length > 0 && (
          <Note tone="warn">
            SQL has no literal for {missing.map(({ name }) => name).join(", ")}. Rows of this table are
            written by reducers.
          </Note>
        )}
        {table.columns.map((column, at) => (
          <Field
            key={at}
            column={column}
            text={texts[at]!}
            wrong={wrong.get(at)}
            isFixed={!canEdit || !hasLiteral(column.type)}
            onChange={(text) => setTexts(texts.map((old, index) => (index === at ? text : old)))}
          />
        ))}
        {error && <Note tone="bad">{error}</Note>}
        {shown && <pre className="statement">{shown}</pre>}
        <div className="dialog-actions">
          {row && canEdit && !isDeleting && (
            <Button kind="danger" icon="trash" onClick={() => setDeleting(true)}>
              Delete
            </Button>
          )}
          {isDeleting ? (
            <>
              <Button onClick={() => setDeleting(false)}>Keep it</Button>
              <Button kind="danger" submit disabled={isBusy}>
                Delete this row
              </Button>
            </>
          ) : (
            canEdit && (
              <Button kind="primary" submit disabled={!statement || isBusy || wrong.size > 0}>
                {row ? "Save" : "Insert"}
              </Button>
            )
          )}
        </div>
      </form>
    </Dialog>
  );
}

function Field(props: {
  column: Column;
  text: string;
  wrong: string | undefined;
  isFixed: boolean;
  onChange: (text: string) => void;
}): ReactNode {
  const { column, text } = props;
  const kind = kindOf(column.type);
  const isLong = text.length > 60 || text.includes("\n");
  const id = useId();
  const common = {
    id,
    value: text,
    readOnly: props.isFixed,
    className: kind === "string" ? "" : "mono",
    spellCheck: false,
    "aria-invalid": props.wrong !== undefined,
  };
  return (
    <div className="field">
      <span>
        <label htmlFor={id}>{column.name}</label> <em>{nameOf(column.type)}</em>
        {column.isPrimaryKey && <Badge tone="accent">primary key</Badge>}
        {column.isCounted && <Badge>auto-increment</Badge>}
      </span>
      {kind === "bool" && !props.isFixed ? (
        <select id={id} value={text} onChange={(event) => props.onChange(event.target.value)}>
          <option>true</option>
          <option>false</option>
        </select>
      ) : isLong ? (
        <textarea
          {...common}
          rows={Math.min(8, Math.ceil(text.length / 50))}
          onChange={(event) => props.onChange(event.target.value)}
        />
      ) : (
        <input {...common} type="text" onChange={(event) => props.onChange(event.target.value)} />
      )}
      {props.wrong && <small className="wrong">{props.wrong}</small>}
    </div>
  );
}
