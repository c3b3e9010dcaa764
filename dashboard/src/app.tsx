// The frame around all pages: where one is, where one can go, and by which keys.

import { type ReactNode, useEffect, useMemo, useState } from "react";
import { DatabaseFrame, useDatabase } from "./database";
import { Login, Mark } from "./login";
import { metrics } from "./metrics";
import { Databases } from "./pages/databases";
import { Functions } from "./pages/functions";
import { Health } from "./pages/health";
import { LiveQueries } from "./pages/live_queries";
import { Logs } from "./pages/logs";
import { Module } from "./pages/module";
import { Schedules } from "./pages/schedules";
import { Sql } from "./pages/sql";
import { Tables } from "./pages/tables";
import { type Command, Palette } from "./palette";
import { go, linkTo, place } from "./router";
import { logIn, logOut, offered, session } from "./session";
import { Store, useStore } from "./store";
import { isDark, setTheme } from "./theme";
import { Badge, Button, Dialog, Empty, Icon, shortIdentity } from "./ui";

const PAGES = [
  { name: "tables", text: "Tables", icon: "table", key: "t", page: Tables },
  { name: "functions", text: "Functions", icon: "code", key: "f", page: Functions },
  { name: "sql", text: "SQL", icon: "terminal", key: "q", page: Sql },
  { name: "live", text: "Live queries", icon: "live", key: "l", page: LiveQueries },
  { name: "logs", text: "Logs", icon: "list", key: "o", page: Logs },
  { name: "schedules", text: "Schedules", icon: "clock", key: "s", page: Schedules },
  { name: "module", text: "Module", icon: "box", key: "m", page: Module },
  { name: "health", text: "Health", icon: "pulse", key: "h", page: Health },
] as const;

/** Tables and functions of the database, for the palette. */
const known = new Store<Command[]>([]);

export function App(): ReactNode {
  const isIn = useStore(session) !== undefined;
  return isIn ? <Shell /> : <Login />;
}

function Shell(): ReactNode {
  const [first, name, page] = useStore(place);
  const database = first === "db" && name !== undefined ? name : undefined;
  const [isMenuOpen, setMenuOpen] = useState(false);
  const [isPaletteOpen, setPaletteOpen] = useState(false);
  const [isHelpOpen, setHelpOpen] = useState(false);
  const commands = useCommands(database);
  useKeys(database, { palette: () => setPaletteOpen(true), help: () => setHelpOpen(true) });
  const offer = useStore(offered);
  // The menu closes when another page is there.
  useEffect(() => {
    setMenuOpen(false);
    document.querySelector("main")?.scrollTo(0, 0);
  }, [first, name, page]);
  useEffect(() => {
    const text = PAGES.find((one) => one.name === (page ?? "tables"))?.text;
    document.title = database ? `${database} · ${text ?? ""} · Lightcone` : "Lightcone";
  }, [database, page]);
  return (
    <div className={`shell${isMenuOpen ? " menu-open" : ""}`}>
      <button type="button" className="skip" onClick={() => document.getElementById("content")!.focus()}>
        Skip to the content
      </button>
      <header className="bar">
        <Button kind="quiet" icon="menu" label="Menu" onClick={() => setMenuOpen(!isMenuOpen)}>
          {null}
        </Button>
        <span className="bar-title">{database ?? "Lightcone"}</span>
        <Button kind="quiet" icon="search" label="Command palette" onClick={() => setPaletteOpen(true)}>
          {null}
        </Button>
      </header>
      <Side
        database={database}
        page={first === "server" ? "server" : page}
        onPalette={() => setPaletteOpen(true)}
      />
      {isMenuOpen && (
        <button
          type="button"
          className="scrim"
          aria-label="Close the menu"
          onClick={() => setMenuOpen(false)}
        />
      )}
      <main id="content" tabIndex={-1}>
        {database ? (
          <DatabaseFrame key={database} name={database}>
            <Known />
            <Page name={page ?? "tables"} />
          </DatabaseFrame>
        ) : first === "server" ? (
          <Health />
        ) : (
          <Databases />
        )}
      </main>
      {isPaletteOpen && <Palette commands={commands} onClose={() => setPaletteOpen(false)} />}
      {isHelpOpen && <Help onClose={() => setHelpOpen(false)} />}
      {offer !== undefined && <Offer token={offer} />}
    </div>
  );
}

function Page({ name }: { name: string }): ReactNode {
  const found = PAGES.find((page) => page.name === name);
  if (!found) return <Empty title="There is no such page" />;
  const Found = found.page;
  return <Found />;
}

function Side(props: {
  database: string | undefined;
  page: string | undefined;
  onPalette: () => void;
}): ReactNode {
  const { identity } = useStore(session)!;
  const isNight = useStore(isDark);
  const { isServerOpen } = useStore(metrics);
  const here = (isHere: boolean) => (isHere ? ("page" as const) : undefined);
  return (
    <nav className="side" aria-label="Pages">
      <a className="brand" href={linkTo()}>
        <Mark /> Lightcone
      </a>
      <button type="button" className="find" onClick={props.onPalette}>
        <Icon name="search" /> Find <kbd>Ctrl K</kbd>
      </button>
      <ul>
        <li>
          <a href={linkTo()} aria-current={here(!props.database && props.page !== "server")}>
            <Icon name="database" /> Databases
          </a>
        </li>
        {isServerOpen && (
          <li>
            <a href={linkTo("server")} aria-current={here(props.page === "server")}>
              <Icon name="pulse" /> Server
            </a>
          </li>
        )}
      </ul>
      {props.database && (
        <>
          <div className="side-title" title={props.database}>
            {props.database}
          </div>
          <ul>
            {PAGES.map((page) => (
              <li key={page.name}>
                <a
                  href={linkTo("db", props.database!, page.name)}
                  aria-current={here((props.page ?? "tables") === page.name)}
                >
                  <Icon name={page.icon} /> {page.text}
                </a>
              </li>
            ))}
          </ul>
        </>
      )}
      <div className="side-end">
        <div className="who" title={`0x${identity}`}>
          <Icon name="user" /> <span className="mono">{shortIdentity(identity)}</span>
        </div>
        <Button
          kind="quiet"
          icon={isNight ? "sun" : "moon"}
          label={isNight ? "Light colours" : "Dark colours"}
          onClick={() => setTheme(isNight ? "light" : "dark")}
        >
          {null}
        </Button>
        <Button kind="quiet" icon="out" label="Log out" onClick={logOut}>
          {null}
        </Button>
      </div>
    </nav>
  );
}

/** Tells the palette what the database has. */
function Known(): null {
  const { name, schema } = useDatabase();
  useEffect(() => {
    const tables = schema.tables.map((table) => ({
      group: table.isView ? "View" : "Table",
      name: table.name,
      icon: "table" as const,
      run: () => go("db", name, "tables", table.name),
    }));
    const functions = schema.functions.map((func) => ({
      group: func.kind[0]!.toUpperCase() + func.kind.slice(1),
      name: func.kind === "view" ? `${func.name}()` : func.name,
      icon: "code" as const,
      run: () => go("db", name, "functions", func.kind, func.name),
    }));
    known.set([...tables, ...functions]);
    return () => known.set([]);
  }, [name, schema]);
  return null;
}

function useCommands(database: string | undefined): Command[] {
  const things = useStore(known);
  const { databases } = useStore(metrics);
  return useMemo(() => {
    const pages: Command[] = database
      ? PAGES.map((page) => ({
          group: "Page",
          name: page.text,
          icon: page.icon,
          hint: `G ${page.key.toUpperCase()}`,
          run: () => go("db", database, page.name),
        }))
      : [];
    const others: Command[] = [...databases.values()].slice(0, 200).map(({ now }) => ({
      group: "Database",
      name: now.names[0] ?? now.identity,
      icon: "database",
      run: () => go("db", now.names[0] ?? now.identity),
    }));
    const rest: Command[] = [
      { group: "Page", name: "Databases", icon: "database", hint: "G D", run: () => go() },
      { group: "Page", name: "Server", icon: "pulse", run: () => go("server") },
      { group: "Colours", name: "Dark", icon: "moon", run: () => setTheme("dark") },
      { group: "Colours", name: "Light", icon: "sun", run: () => setTheme("light") },
      { group: "Colours", name: "As the system", icon: "sun", run: () => setTheme("system") },
      { group: "Session", name: "Log out", icon: "out", run: logOut },
    ];
    return [...pages, ...things, ...others, ...rest];
  }, [database, things, databases]);
}

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest("input, textarea, select, [contenteditable], dialog") !== null;

/** `G` and a letter go to a page. */
function useKeys(database: string | undefined, open: { palette: () => void; help: () => void }): void {
  useEffect(() => {
    let wasG = 0;
    const onKey = (event: KeyboardEvent) => {
      if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
        event.preventDefault();
        open.palette();
        return;
      }
      if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
      const isSecond = Date.now() - wasG < 1500;
      wasG = 0;
      if (isSecond && event.key === "d") return go();
      const page = isSecond && database && PAGES.find(({ key }) => key === event.key);
      if (page) return go("db", database, page.name);
      if (event.key === "g") wasG = Date.now();
      if (event.key === "?") open.help();
      if (event.key !== "/") return;
      event.preventDefault();
      document.querySelector<HTMLElement>("main [data-filter]")?.focus();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [database, open]);
}

function Help({ onClose }: { onClose: () => void }): ReactNode {
  const keys = [
    ["Ctrl K", "find a page, a table, a function"],
    ["G D", "databases"],
    ...PAGES.map((page) => [`G ${page.key.toUpperCase()}`, page.text.toLowerCase()]),
    ["/", "filter what is on the page"],
    ["Ctrl Enter", "run the SQL text, call the function"],
    ["↑ ↓ Page Home End", "move in a table"],
    ["Enter", "open the row"],
    ["Esc", "close"],
  ];
  return (
    <Dialog title="Keys" onClose={onClose}>
      <dl className="keys">
        {keys.map(([key, text]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

function Offer({ token }: { token: string }): ReactNode {
  const close = () => offered.set(undefined);
  return (
    <Dialog title="Another login" onClose={close}>
      <p>The link that you followed brings a login of its own. You are logged in with another one.</p>
      <div className="dialog-actions">
        <Button onClick={close}>Stay as I am</Button>
        <Button
          kind="primary"
          onClick={() => {
            close();
            void logIn(token, false);
          }}
        >
          Use the new login
        </Button>
      </div>
    </Dialog>
  );
}

export const ReadOnly = (): ReactNode => <Badge tone="bad">read-only</Badge>;
