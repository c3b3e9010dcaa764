// What the module says, as it says it.

import { type ReactNode, useEffect, useLayoutEffect, useMemo, useRef, useState } from "react";
import { messageOf } from "../api";
import { useDatabase } from "../database";
import { followLogs, LEVELS, type Line } from "../logs";
import { Badge, Button, Dialog, Note, Search, type Tone, whole } from "../ui";

/** Lines that are kept; older ones go. */
const LINES_MAX = 5_000;
const FIRST_LINES = 500;
const ROW_PX = 26;
/** How long to wait before the log is followed again after it has ended. */
const AGAIN_MS = 3_000;

const TONES: Record<string, Tone> = { Error: "bad", Panic: "bad", Warn: "warn", Info: "accent" };

export function Logs(): ReactNode {
  const { name, token } = useDatabase();
  const [lines, setLines] = useState<Line[]>([]);
  const [error, setError] = useState<string>();
  const [isFollowing, setFollowing] = useState(true);
  const [level, setLevel] = useState("");
  const [func, setFunc] = useState("");
  const [text, setText] = useState("");
  const [opened, setOpened] = useState<Line>();

  useEffect(() => {
    if (!isFollowing) return;
    const abort = new AbortController();
    const follow = async () => {
      for (;;) {
        setLines([]);
        try {
          await followLogs(name, token, FIRST_LINES, abort.signal, (came) => {
            setError(undefined);
            setLines((before) => [...before, ...came].slice(-LINES_MAX));
          });
        } catch (failure) {
          if (abort.signal.aborted) return;
          setError(messageOf(failure));
        }
        await new Promise((done) => setTimeout(done, AGAIN_MS));
        if (abort.signal.aborted) return;
      }
    };
    void follow();
    return () => abort.abort();
  }, [name, token, isFollowing]);

  const functions = useMemo(
    () => [...new Set(lines.map((line) => line.func).filter(Boolean))].sort().slice(0, 200),
    [lines],
  );
  const shown = useMemo(() => {
    const worst = LEVELS.indexOf(level as (typeof LEVELS)[number]);
    const letters = text.toLowerCase();
    return lines.filter(
      (line) =>
        (worst < 0 || LEVELS.indexOf(line.level as (typeof LEVELS)[number]) <= worst) &&
        (func === "" || line.func === func) &&
        (letters === "" || line.message.toLowerCase().includes(letters)),
    );
  }, [lines, level, func, text]);
  return (
    <section className="pane" aria-label="Logs">
      <header className="pane-head">
        <h1>Logs</h1>
        <div className="toolbar grows">
          <Search
            label="Text in the lines"
            placeholder="Text"
            value={text}
            onChange={setText}
            className="search grows"
          />
          <select aria-label="Level" value={level} onChange={(event) => setLevel(event.target.value)}>
            <option value="">All levels</option>
            {LEVELS.map((one) => (
              <option key={one} value={one}>
                {one === "Panic" ? "Panics" : one === "Error" ? "Errors and panics" : `${one} and worse`}
              </option>
            ))}
          </select>
          <select aria-label="Function" value={func} onChange={(event) => setFunc(event.target.value)}>
            <option value="">All functions</option>
            {functions.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
          <Button
            icon={isFollowing ? "pause" : "play"}
            pressed={isFollowing}
            onClick={() => setFollowing(!isFollowing)}
          >
            {isFollowing ? "Following" : "Follow"}
          </Button>
        </div>
      </header>
      {error && <Note tone="bad">{error}</Note>}
      <LineList lines={shown} isFollowing={isFollowing} onOpen={setOpened} />
      <footer className="pane-foot">
        {whole(shown.length)} of {whole(lines.length)} lines
        {lines.length === LINES_MAX && ", older ones are gone from here"}
      </footer>
      {opened && <LinePanel line={opened} onClose={() => setOpened(undefined)} />}
    </section>
  );
}

function LineList({
  lines,
  isFollowing,
  onOpen,
}: {
  lines: Line[];
  isFollowing: boolean;
  onOpen: (line: Line) => void;
}): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const isAtEnd = useRef(true);
  useEffect(() => {
    const element = frame.current!;
    const observer = new ResizeObserver(() =>
      setView({ top: element.scrollTop, height: element.clientHeight }),
    );
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  // A view that is at the end stays there when lines come.
  useLayoutEffect(() => {
    const element = frame.current!;
    if (isFollowing && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [lines, isFollowing]);
  const first = Math.max(0, Math.floor(view.top / ROW_PX) - 5);
  const last = Math.min(lines.length, Math.ceil((view.top + view.height) / ROW_PX) + 5);
  return (
    <div
      ref={frame}
      className="log"
      role="log"
      aria-label="Lines"
      aria-live="off"
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < ROW_PX * 2;
        setView({ top: scrollTop, height: clientHeight });
      }}
    >
      <div className="log-canvas" style={{ height: lines.length * ROW_PX }}>
        {lines.slice(first, last).map((line, at) => (
          <button
            key={line.id}
            type="button"
            className={`log-line ${TONES[line.level] ?? "neutral"}`}
            style={{ top: (first + at) * ROW_PX }}
            onClick={() => onOpen(line)}
          >
            <time>{timeText(line.at)}</time>
            <span className="log-level">{line.level}</span>
            <span className="log-func">{line.func || (line.isHost ? "host" : "")}</span>
            <span className="log-text">{line.message.slice(0, 500)}</span>
          </button>
        ))}
      </div>
      {lines.length === 0 && <p className="over-grid">No lines.</p>}
    </div>
  );
}

function timeText(at: number): string {
  const date = new Date(at);
  return Number.isNaN(date.getTime())
    ? ""
    : `${date.toLocaleTimeString("en-GB")}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}

function LinePanel({ line, onClose }: { line: Line; onClose: () => void }): ReactNode {
  return (
    <Dialog title="Line of the log" onClose={onClose} isSide>
      <dl className="facts">
        <dt>Level</dt>
        <dd>
          <Badge tone={TONES[line.level] ?? "neutral"}>{line.level}</Badge>
        </dd>
        <dt>Time</dt>
        <dd className="mono">{Number.isFinite(line.at) ? new Date(line.at).toISOString() : ""}</dd>
        {line.func && (
          <>
            <dt>Function</dt>
            <dd className="mono">{line.func}</dd>
          </>
        )}
        {line.place && (
          <>
            <dt>Place</dt>
            <dd className="mono">{line.place}</dd>
          </>
        )}
      </dl>
      <pre className="statement">{line.message}</pre>
      {line.trace.length > 0 && <pre className="statement dim">{line.trace.join("\n")}</pre>}
    </Dialog>
  );
}
