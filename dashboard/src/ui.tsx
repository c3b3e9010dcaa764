// The small parts that all pages are made of.

import { type ReactNode, useCallback, useEffect, useId, useRef, useState } from "react";
import { messageOf } from "./api";

export function Icon({ name }: { name: keyof typeof PATHS }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** Strokes on a grid of 16. */
const PATHS = {
  database:
    "M2.5 4c0-1.1 2.5-2 5.5-2s5.5.9 5.5 2-2.5 2-5.5 2-5.5-.9-5.5-2Zm0 0v8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2V4M2.5 8c0 1.1 2.5 2 5.5 2s5.5-.9 5.5-2",
  table: "M2 3h12v10H2zM2 6.5h12M2 9.8h12M6.5 6.5V13",
  play: "M5 3.2v9.6L12.5 8z",
  code: "M5.5 4.5 2 8l3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  terminal: "M2 3h12v10H2zM4.5 6l2 2-2 2M8.5 10.2h3",
  live: "M4.8 11.2a4.5 4.5 0 0 1 0-6.4M11.2 4.8a4.5 4.5 0 0 1 0 6.4M2.7 13.3a7.5 7.5 0 0 1 0-10.6M13.3 2.7a7.5 7.5 0 0 1 0 10.6M8 7.4v1.2",
  list: "M5.5 4H14M5.5 8H14M5.5 12H14M2.2 4h.6M2.2 8h.6M2.2 12h.6",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2Zm0 2.8V8l2.3 1.5",
  pulse: "M1.5 8.5h3l2-5 3 9 2-4h3",
  box: "M8 1.8 13.5 5v6L8 14.2 2.5 11V5zM2.7 5 8 8l5.3-3M8 8v6",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9Zm3.3 7.8 3.4 3.4",
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2 4.5h12M2 8h12M2 11.5h12",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM8 1.2v1.4M8 13.4v1.4M1.2 8h1.4M13.4 8h1.4M3.2 3.2l1 1M11.8 11.8l1 1M3.2 12.8l1-1M11.8 4.2l1-1",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8Z",
  user: "M8 2.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6ZM2.8 14c.4-2.6 2.5-4 5.2-4s4.8 1.4 5.2 4",
  trash: "M2.5 4.5h11M6 4.5V2.5h4v2M4 4.5l.7 9h6.6l.7-9M6.8 7v4M9.2 7v4",
  edit: "M3 13l.6-2.8 7-7 2.2 2.2-7 7zM9.2 4.6l2.2 2.2",
  refresh: "M13 8a5 5 0 1 1-1.5-3.6M13 2v3h-3",
  chevron: "M6 3.5 10.5 8 6 12.5",
  pause: "M5.2 3.5v9M10.8 3.5v9",
  out: "M6 2.5H3v11h3M10 5l3 3-3 3M13 8H6.5",
} as const;

export function Button(props: {
  children: ReactNode;
  onClick?: () => void;
  kind?: "primary" | "plain" | "danger" | "quiet";
  icon?: keyof typeof PATHS;
  label?: string;
  disabled?: boolean;
  submit?: boolean;
  pressed?: boolean;
  title?: string;
}): ReactNode {
  return (
    <button
      type={props.submit ? "submit" : "button"}
      className={`button ${props.kind ?? "plain"}`}
      onClick={props.onClick}
      disabled={props.disabled}
      aria-label={props.label}
      aria-pressed={props.pressed}
      title={props.title}
    >
      {props.icon && <Icon name={props.icon} />}
      {props.children}
    </button>
  );
}

export const Badge = ({ children, tone = "neutral" }: { children: ReactNode; tone?: Tone }): ReactNode => (
  <span className={`badge ${tone}`}>{children}</span>
);

export type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

export const Note = ({ children, tone = "neutral" }: { children: ReactNode; tone?: Tone }): ReactNode => (
  <div className={`note ${tone}`} role={tone === "bad" ? "alert" : "note"}>
    {children}
  </div>
);

export const Empty = ({ title, children }: { title: string; children?: ReactNode }): ReactNode => (
  <div className="empty">
    <p className="empty-title">{title}</p>
    {children && <p>{children}</p>}
  </div>
);

export const Loading = (): ReactNode => (
  <div className="loading" role="status">
    <span className="spinner" aria-hidden="true" /> Loading
  </div>
);

export function Head({
  title,
  children,
  about,
}: {
  title: string;
  children?: ReactNode;
  about?: ReactNode;
}): ReactNode {
  return (
    <header className="head">
      <div className="head-text">
        <h1>{title}</h1>
        {about && <p>{about}</p>}
      </div>
      {children && <div className="head-actions">{children}</div>}
    </header>
  );
}

export const Stat = ({
  name,
  value,
  about,
}: {
  name: string;
  value: ReactNode;
  about?: string;
}): ReactNode => (
  <div className="stat">
    <dt>{name}</dt>
    <dd>
      {value}
      {about && <small>{about}</small>}
    </dd>
  </div>
);

/** A field that filters what is listed. `isFilter`: the key for filters leads to it. */
export function Search(props: {
  label: string;
  placeholder: string;
  value: string;
  onChange: (text: string) => void;
  className?: string;
  isFilter?: boolean;
}): ReactNode {
  return (
    <label className={props.className ?? "search"}>
      <Icon name="search" />
      <span className="visually-hidden">{props.label}</span>
      <input
        data-filter={props.isFilter === false ? undefined : true}
        type="search"
        placeholder={props.placeholder}
        value={props.value}
        onChange={(event) => props.onChange(event.target.value)}
      />
    </label>
  );
}

/** Tabs in the sense of the pattern of that name: arrows move between them. */
export function Tabs<Name extends string>(props: {
  label: string;
  tabs: readonly { name: Name; text: ReactNode }[];
  now: Name;
  onChange: (name: Name) => void;
}): ReactNode {
  const step = (by: number) => {
    const at = props.tabs.findIndex(({ name }) => name === props.now);
    props.onChange(props.tabs[(at + by + props.tabs.length) % props.tabs.length]!.name);
  };
  return (
    <div
      className="tabs"
      role="tablist"
      aria-label={props.label}
      onKeyDown={(event) => {
        if (event.key === "ArrowRight") step(1);
        if (event.key === "ArrowLeft") step(-1);
      }}
    >
      {props.tabs.map(({ name, text }) => (
        <button
          key={name}
          type="button"
          role="tab"
          aria-selected={name === props.now}
          tabIndex={name === props.now ? 0 : -1}
          onClick={() => props.onChange(name)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

/** A dialog of the browser: it keeps the focus, and Escape closes it. */
export function Dialog(props: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  isSide?: boolean;
  isBare?: boolean;
}): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current!;
    const before = document.activeElement;
    element.showModal();
    return () => {
      element.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    // The backdrop is part of the dialog, so a click on it comes here.
    <dialog
      ref={dialog}
      className={props.isSide ? "drawer" : props.isBare ? "bare" : undefined}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        props.onClose();
      }}
      onClick={(event) => event.target === dialog.current && props.onClose()}
    >
      <div className="dialog-body">
        <div className={props.isBare ? "visually-hidden" : "dialog-head"}>
          <h2 id={id}>{props.title}</h2>
          {!props.isBare && (
            <Button kind="quiet" icon="close" label="Close" onClick={props.onClose}>
              {null}
            </Button>
          )}
        </div>
        {props.children}
      </div>
    </dialog>
  );
}

export interface Loaded<T> {
  value: T | undefined;
  error: string | undefined;
  reload: () => void;
}

/** What a promise gives; asked again when `keys` change. A late answer to an old question is dropped. */
export function useLoaded<T>(load: () => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: string }>({});
  const [turn, setTurn] = useState(0);
  // `keys` say what `load` depends on.
  useEffect(() => {
    let isOver = false;
    load().then(
      (value) => isOver || setState({ value }),
      (error) => isOver || setState({ error: messageOf(error) }),
    );
    return () => {
      isOver = true;
    };
  }, [...keys, turn]);
  const reload = useCallback(() => setTurn((before) => before + 1), []);
  return { value: state.value, error: state.error, reload };
}

/** Calls `tick` every `every_ms` while the component is there and the page is visible. */
export function useTick(tick: () => void, every_ms: number): void {
  const latest = useRef(tick);
  latest.current = tick;
  useEffect(() => {
    const timer = setInterval(() => document.hidden || latest.current(), every_ms);
    return () => clearInterval(timer);
  }, [every_ms]);
}

// Numbers for people --------------------------------------------------------------------------------------------------

const WHOLE = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

export const whole = (value: number): string => WHOLE.format(value);

export function rate(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  if (value < 0.1) return "<0.1";
  return value < 10 ? value.toFixed(1) : compact(value);
}

export function compact(value: number): string {
  if (value < 10_000) return whole(value);
  if (value < 1e6) return `${+(value / 1e3).toPrecision(3)}k`;
  return value < 1e9 ? `${+(value / 1e6).toPrecision(3)}M` : `${+(value / 1e9).toPrecision(3)}G`;
}

export function bytes(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let size = value;
  while (size >= 1024 && at < units.length - 1) {
    size /= 1024;
    at++;
  }
  return `${at === 0 ? whole(size) : +size.toPrecision(3)} ${units[at]}`;
}

export function micros(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "–";
  if (value < 1000) return `${Math.round(value)} µs`;
  return value < 1e6 ? `${+(value / 1000).toPrecision(3)} ms` : `${+(value / 1e6).toPrecision(3)} s`;
}

export const clock = (at: number): string => new Date(at).toLocaleTimeString("en-GB");

export const shortIdentity = (identity: string): string =>
  identity ? `${identity.slice(0, 8)}…${identity.slice(-4)}` : "unknown";
