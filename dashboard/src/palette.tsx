// Everything by its name: Ctrl-K, a few letters, Enter.

import { type ReactNode, useEffect, useId, useMemo, useRef, useState } from "react";
import { Dialog, Icon } from "./ui";

export interface Command {
  group: string;
  name: string;
  icon: Parameters<typeof Icon>[0]["name"];
  hint?: string | undefined;
  run: () => void;
}

/** Commands that are listed at a time. */
const SHOWN_MAX = 60;

/** How well the letters fit: fewer is better; undefined if they do not come in this order. */
export function fit(letters: string, name: string): number | undefined {
  const [small, text] = [letters.toLowerCase(), name.toLowerCase()];
  const whole = text.indexOf(small);
  if (whole >= 0) return whole + text.length / 1000;
  let at = -1;
  let gaps = 0;
  for (const letter of small) {
    const next = text.indexOf(letter, at + 1);
    if (next < 0) return undefined;
    gaps += next - at - 1;
    at = next;
  }
  return 100 + gaps;
}

export function Palette({ commands, onClose }: { commands: Command[]; onClose: () => void }): ReactNode {
  const [letters, setLetters] = useState("");
  const [chosen, setChosen] = useState(0);
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const found = useMemo(() => {
    if (letters.trim() === "") return commands.slice(0, SHOWN_MAX);
    const rated = commands.map((command) => ({
      command,
      rate: fit(letters.trim(), `${command.name} ${command.group}`),
    }));
    const fitting = rated.filter((one): one is typeof one & { rate: number } => one.rate !== undefined);
    return fitting
      .sort((a, b) => a.rate - b.rate)
      .slice(0, SHOWN_MAX)
      .map(({ command }) => command);
  }, [letters, commands]);
  useEffect(() => {
    list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest" });
  }, [chosen, found]);
  const run = (command: Command | undefined) => {
    if (!command) return;
    onClose();
    command.run();
  };
  return (
    <Dialog title="Command palette" onClose={onClose} isBare>
      <div className="palette">
        <div className="palette-input">
          <Icon name="search" />
          <input
            autoFocus
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls={id}
            aria-activedescendant={found.length > 0 ? `${id}-${chosen}` : undefined}
            aria-label="Find a page, a table, a function"
            placeholder="Find a page, a table, a function…"
            value={letters}
            spellCheck={false}
            onChange={(event) => {
              setLetters(event.target.value);
              setChosen(0);
            }}
            onKeyDown={(event) => {
              if (event.key === "Enter") run(found[chosen]);
              const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
              if (by === undefined || found.length === 0) return;
              event.preventDefault();
              setChosen((chosen + by + found.length) % found.length);
            }}
          />
        </div>
        <div id={id} ref={list} className="palette-list" role="listbox" aria-label="Commands" tabIndex={-1}>
          {found.map((command, at) => (
            <div
              key={`${command.group} ${command.name}`}
              id={`${id}-${at}`}
              role="option"
              tabIndex={-1}
              aria-selected={at === chosen}
              onPointerMove={() => setChosen(at)}
              onClick={() => run(command)}
            >
              <Icon name={command.icon} />
              <span className="palette-name">{command.name}</span>
              <span className="palette-group">{command.group}</span>
              {command.hint && <kbd>{command.hint}</kbd>}
            </div>
          ))}
          {found.length === 0 && <p className="palette-none">Nothing is called so.</p>}
        </div>
      </div>
    </Dialog>
  );
}
