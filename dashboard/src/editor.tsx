// A field for SQL: words in colours, and names of the schema to complete.

import { type KeyboardEvent, type ReactNode, useId, useMemo, useRef, useState } from "react";
import type { Schema } from "./schema";
import { nameOf } from "./types";

const TOKEN = /(--[^\n]*)|('(?:[^']|'')*'?)|("(?:[^"]|"")*"?)|(\b\d[\w.]*)|([A-Za-z_]\w*)|(:\w+)|(\s+)|(.)/gy;

const KEYWORDS = new Set(
  `select from where and or not in exists between like is null as on join inner left outer order by group having limit
  offset asc desc distinct insert into values update set delete explain show count sum min max avg true false all`
    .trim()
    .split(/\s+/),
);

/** Longer texts are shown without colours. */
const COLOURED_MAX = 20_000;
const SUGGESTIONS_MAX = 12;

interface Token {
  text: string;
  look: string;
}

function tokensOf(text: string): Token[] {
  if (text.length > COLOURED_MAX) return [{ text, look: "" }];
  return [...text.matchAll(TOKEN)].map(([whole, comment, string, name, number, word, variable]) => {
    const look = comment
      ? "comment"
      : string
        ? "string"
        : name
          ? "name"
          : number
            ? "number"
            : word && KEYWORDS.has(word.toLowerCase())
              ? "keyword"
              : variable
                ? "number"
                : "";
    return { text: whole, look };
  });
}

interface Suggestion {
  text: string;
  about: string;
}

/** What may stand where the cursor is. */
function suggestionsFor(
  before: string,
  whole: string,
  schema: Schema,
): { word: string; found: Suggestion[] } {
  const word = /[\w"]*$/.exec(before)![0];
  const owner = /([\w"]+)\.[\w"]*$/.exec(before)?.[1]?.replaceAll('"', "");
  const mentioned = schema.tables.filter((table) =>
    new RegExp(`\\b${table.name.replace(/\W/g, "\\$&")}\\b`).test(whole),
  );
  const tables = schema.tables.map((one) => ({ text: one.name, about: one.isView ? "view" : "table" }));
  const aliases = [...whole.matchAll(/\b(?:from|join)\s+(\w+)\s+(?:as\s+)?(\w+)/gi)];
  const ownerTable = aliases.find(([, , alias]) => alias === owner)?.[1] ?? owner;
  const columnsOf = (list: typeof schema.tables) =>
    list.flatMap((table) =>
      table.columns.map(({ name, type }) => ({ text: name, about: `${table.name}, ${nameOf(type)}` })),
    );
  const pool = owner
    ? columnsOf(schema.tables.filter((table) => table.name === ownerTable))
    : /\b(from|join|into|update)\s+[\w"]*$/i.test(before)
      ? tables
      : [
          ...columnsOf(mentioned.length > 0 ? mentioned : []),
          ...tables,
          ...[...KEYWORDS].map((one) => ({ text: one.toUpperCase(), about: "" })),
        ];
  const letters = word.replaceAll('"', "").toLowerCase();
  if (letters === "" && !owner && pool !== tables) return { word, found: [] };
  const seen = new Set<string>();
  const found = pool.filter(({ text }) => {
    const fits = text.toLowerCase().startsWith(letters) && text.toLowerCase() !== letters && !seen.has(text);
    if (fits) seen.add(text);
    return fits;
  });
  return { word, found: found.slice(0, SUGGESTIONS_MAX) };
}

/** A name as SQL reads it. */
const written = (name: string): string =>
  /^[A-Za-z_]\w*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;

export function Editor(props: {
  text: string;
  schema: Schema;
  onChange: (text: string) => void;
  onRun: () => void;
}): ReactNode {
  const area = useRef<HTMLTextAreaElement>(null);
  const [list, setList] = useState<{ word: string; found: Suggestion[]; left: number; top: number }>();
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const tokens = useMemo(() => tokensOf(props.text), [props.text]);
  const lines = props.text.split("\n").length;

  const suggest = () => {
    const element = area.current!;
    const before = element.value.slice(0, element.selectionStart);
    const { word, found } = suggestionsFor(before, element.value, props.schema);
    if (found.length === 0) return setList(undefined);
    const line = before.split("\n");
    // All letters are of one width.
    const left = (line.at(-1)!.length - word.length) * 7.82 + 14;
    setList({
      word,
      found,
      left: Math.min(left, element.clientWidth - 240),
      top: line.length * 21 + 14 - element.scrollTop,
    });
    setChosen(0);
  };
  const take = (suggestion: Suggestion) => {
    const element = area.current!;
    const end = element.selectionStart;
    const start = end - list!.word.length;
    const text = KEYWORDS.has(suggestion.text.toLowerCase()) ? suggestion.text : written(suggestion.text);
    element.focus();
    element.setRangeText(text, start, end, "end");
    props.onChange(element.value);
    setList(undefined);
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      setList(undefined);
      props.onRun();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      suggest();
    } else if (list) {
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) setChosen((chosen + by + list.found.length) % list.found.length);
      else if (event.key === "Tab" || event.key === "Enter") take(list.found[chosen]!);
      else if (event.key === "Escape") setList(undefined);
      else return;
      event.preventDefault();
    }
  };
  return (
    <div className="editor" style={{ height: Math.max(6, Math.min(16, lines + 1)) * 21 + 24 }}>
      <pre aria-hidden="true">
        {tokens.map((token, at) => (
          <span key={at} className={token.look}>
            {token.text}
          </span>
        ))}
        {"\n"}
      </pre>
      <textarea
        ref={area}
        data-filter
        aria-label="SQL"
        aria-autocomplete="list"
        aria-controls={list ? id : undefined}
        aria-activedescendant={list ? `${id}-${chosen}` : undefined}
        value={props.text}
        spellCheck={false}
        autoCapitalize="off"
        autoComplete="off"
        wrap="off"
        onChange={(event) => {
          props.onChange(event.target.value);
          queueMicrotask(suggest);
        }}
        onScroll={(event) => {
          const { scrollTop, scrollLeft, previousElementSibling } = event.currentTarget;
          previousElementSibling!.scrollTo(scrollLeft, scrollTop);
        }}
        onKeyDown={onKey}
        onBlur={() => setTimeout(() => setList(undefined), 150)}
      />
      {list && (
        <div
          id={id}
          className="suggestions"
          role="listbox"
          aria-label="Completions"
          style={{ left: Math.max(8, list.left), top: list.top }}
        >
          {list.found.map((suggestion, at) => (
            <div
              key={suggestion.text}
              id={`${id}-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(suggestion)}
            >
              <span>{suggestion.text}</span>
              <small>{suggestion.about}</small>
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
