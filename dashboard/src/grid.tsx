// A table of any number of rows: only those on the screen are in the document.

import { type KeyboardEvent, type ReactNode, useEffect, useLayoutEffect, useRef, useState } from "react";
import { cellText, isNumeric, type Kind, kindOf, type Type } from "./types";

const ROW_PX = 30;
const HEAD_PX = 34;
/** Browsers draw no taller element than some 17 million pixels; beyond this, the scroll bar stands for more. */
const HEIGHT_PX_MAX = 8_000_000;
/** Columns that are drawn; a table with more shows the rest in its rows' panels. */
const COLUMNS_MAX = 64;

export interface GridColumn {
  name: string;
  type: Type;
  about?: string | undefined;
  isKey?: boolean;
}

export interface GridProps {
  label: string;
  columns: GridColumn[];
  count: number;
  row: (at: number) => unknown[] | undefined;
  onShow?: (first: number, last: number) => void;
  onOpen?: (at: number) => void;
  sort?: { column: number; isDescending: boolean } | undefined;
  onSort?: (column: number) => void;
  isNew?: (row: unknown[]) => boolean;
}

const WIDTHS: Partial<Record<Kind, number>> = {
  bool: 84,
  integer: 120,
  float: 120,
  identity: 160,
  "connection id": 190,
  timestamp: 236,
  duration: 110,
  uuid: 290,
  string: 230,
};

const widthOf = (column: GridColumn): number =>
  Math.max(WIDTHS[kindOf(column.type)] ?? 210, Math.min(260, column.name.length * 8 + 46));

export function Grid(props: GridProps): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 400 });
  const [scroll, setScroll] = useState(0);
  const [chosen, setChosen] = useState(-1);
  const columns = props.columns.slice(0, COLUMNS_MAX);
  const widths = columns.map(widthOf);
  const sum = widths.reduce((all, one) => all + one, 0) + 56;
  const room = Math.max(1, size.height - HEAD_PX);
  const fullHeight = props.count * ROW_PX;
  const height = Math.min(fullHeight, HEIGHT_PX_MAX);
  // How many pixels of rows a pixel of the scroll bar stands for.
  const scale = fullHeight > height ? (fullHeight - room) / Math.max(1, height - room) : 1;
  const position = Math.min(scroll * scale, Math.max(0, fullHeight - room));
  const first = Math.max(0, Math.floor(position / ROW_PX));
  const last = Math.min(props.count - 1, Math.ceil((position + room) / ROW_PX));

  useEffect(() => {
    const element = frame.current!;
    const observer = new ResizeObserver(() =>
      setSize({ width: element.clientWidth, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const { onShow } = props;
  useEffect(() => onShow?.(first, Math.max(first, last)), [first, last, onShow]);
  useEffect(() => {
    const element = frame.current!;
    const onWheel = (event: WheelEvent) => {
      if (scale === 1 || event.shiftKey || event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      element.scrollTop += (event.deltaY * (event.deltaMode === 1 ? ROW_PX : 1)) / scale;
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [scale]);
  const goTo = (at: number) => {
    const row = Math.max(0, Math.min(props.count - 1, at));
    setChosen(row);
    const top = row * ROW_PX;
    const element = frame.current!;
    if (top < position) element.scrollTop = top / scale;
    else if (top + ROW_PX > position + room)
      element.scrollTop = (top + ROW_PX - room) / scale + (scale > 1 ? 1 : 0);
  };
  const onKey = (event: KeyboardEvent) => {
    const pageRows = Math.max(1, Math.floor(room / ROW_PX) - 1);
    const at = chosen < 0 ? first - 1 : chosen;
    const to: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + pageRows,
      PageUp: at - pageRows,
      Home: 0,
      End: props.count - 1,
    };
    if (event.key === "Enter" && chosen >= 0 && event.target === frame.current) {
      event.preventDefault();
      props.onOpen?.(chosen);
    }
    const row = to[event.key];
    if (row === undefined || props.count === 0) return;
    event.preventDefault();
    goTo(row);
  };
  // Another order or filter begins at its top.
  const sortKey = `${props.sort?.column} ${props.sort?.isDescending}`;
  useLayoutEffect(() => {
    frame.current!.scrollTop = 0;
    setChosen(-1);
  }, [sortKey, props.label]);

  const template = {
    gridTemplateColumns: `56px ${widths.map((width) => `minmax(${width}px, ${width}fr)`).join(" ")}`,
  };
  const rows = [];
  for (let at = first; at <= last; at++) rows.push(at);
  return (
    <div
      ref={frame}
      className="grid"
      role="grid"
      aria-label={props.label}
      aria-rowcount={props.count + 1}
      aria-colcount={props.columns.length + 1}
      aria-activedescendant={chosen >= first && chosen <= last ? `row-${chosen}` : undefined}
      tabIndex={0}
      onScroll={(event) => setScroll(event.currentTarget.scrollTop)}
      onKeyDown={onKey}
    >
      <div className="grid-canvas" style={{ height: height + HEAD_PX, minWidth: sum }}>
        <div className="grid-row grid-head" role="row" aria-rowindex={1} style={template}>
          <div role="columnheader" className="cell number" aria-label="Row" tabIndex={-1} />
          {columns.map((column, at) => (
            <div
              key={at}
              role="columnheader"
              tabIndex={-1}
              className={`cell ${isNumeric(column.type) ? "right" : ""}`}
              aria-sort={
                props.sort?.column !== at ? undefined : props.sort.isDescending ? "descending" : "ascending"
              }
            >
              <ColumnTitle column={column} at={at} {...props} />
            </div>
          ))}
        </div>
        {rows.map((at) => {
          const row = props.row(at);
          const top = HEAD_PX + (scale === 1 ? at * ROW_PX : scroll + at * ROW_PX - position);
          return (
            <div
              key={at}
              id={`row-${at}`}
              role="row"
              tabIndex={-1}
              aria-rowindex={at + 2}
              aria-selected={at === chosen}
              className={`grid-row${row && props.isNew?.(row) ? " new" : ""}${props.onOpen ? " opens" : ""}`}
              style={{ ...template, top }}
              onClick={() => {
                setChosen(at);
                props.onOpen?.(at);
              }}
            >
              <div role="rowheader" className="cell number">
                {at + 1}
              </div>
              {columns.map((column, index) => (
                <Cell key={index} type={column.type} row={row} at={index} />
              ))}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function ColumnTitle({ column, at, ...props }: GridProps & { column: GridColumn; at: number }): ReactNode {
  const text = (
    <>
      {column.isKey && <span className="key-mark" title="primary key" aria-hidden="true" />}
      <span className="column-name">{column.name}</span>
      {props.sort?.column === at && (
        <span className="sort-mark" aria-hidden="true">
          {props.sort.isDescending ? "↓" : "↑"}
        </span>
      )}
    </>
  );
  if (!props.onSort) return <span title={column.about}>{text}</span>;
  return (
    <button type="button" tabIndex={-1} title={column.about} onClick={() => props.onSort!(at)}>
      {text}
    </button>
  );
}

function Cell({ type, row, at }: { type: Type; row: unknown[] | undefined; at: number }): ReactNode {
  const kind = kindOf(type);
  if (!row) return <div role="gridcell" tabIndex={-1} className="cell waiting" />;
  const value = row[at];
  const isNone = kind === "option" && (value === undefined || value === null);
  const text = cellText(value, type);
  const look = isNone
    ? "none"
    : text === ""
      ? "none"
      : kind === "string" || kind === "choice" || kind === "option"
        ? ""
        : "mono";
  return (
    <div role="gridcell" tabIndex={-1} className={`cell ${isNumeric(type) ? "right " : ""}${look}`}>
      <span>{text === "" && kind === "string" ? "empty" : text}</span>
    </div>
  );
}
