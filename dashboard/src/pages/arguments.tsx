// A form for the parameters of a function. What it makes is the JSON that the call route takes.

import type { ReactNode } from "react";
import { type Json, jsonText, parseJson } from "../json";
import { type Field, kindOf, nameOf, optionOf, type Type } from "../types";
import { Badge } from "../ui";

export interface Argument {
  text: string;
  /** Of an option: whether there is a value. */
  isThere: boolean;
}

export function emptyArguments(params: readonly Field[]): Argument[] {
  return params.map(({ type }) => ({ text: usual(optionOf(type) ?? type), isThere: !optionOf(type) }));
}

function usual(type: Type): string {
  const kind = kindOf(type);
  if (kind === "bool") return "false";
  if (kind === "choice" && type.tag === "Sum") return type.value.variants[0]?.name ?? "";
  if (kind === "option" || kind === "other") return exampleOf(type);
  return "";
}

/** Parts of an example; a module may nest types without end. */
const EXAMPLE_PARTS_MAX = 60;

/** JSON of the form that a type wants, to be filled in. */
function exampleOf(type: Type): string {
  return jsonText(example(type, { left: EXAMPLE_PARTS_MAX }), 1).replace(/\n\s*/g, " ");
}

function example(type: Type, parts: { left: number }): Json {
  if (--parts.left < 0) return null;
  const kind = kindOf(type);
  if (kind === "option") return null;
  if (kind === "bool") return false;
  if (kind === "integer") return type.tag.endsWith("256") ? "0x0" : 0;
  if (kind === "float") return 0;
  if (type.tag === "Product") {
    const fields = type.value.elements.map(({ name, algebraicType }, at): [string, Json] => [
      name ?? String(at),
      example(algebraicType, parts),
    ]);
    return Object.assign(Object.create(null), Object.fromEntries(fields)) as Json;
  }
  if (type.tag === "Sum") {
    const first = type.value.variants[0];
    if (!first) return [];
    return Object.assign(Object.create(null), {
      [first.name ?? "0"]: example(first.algebraicType, parts),
    }) as Json;
  }
  return type.tag === "Array" && type.value.tag !== "U8" ? [] : "";
}

/** The arguments as a JSON array; throws with the name of what does not fit. */
export function argumentsJson(params: readonly Field[], values: readonly Argument[]): string {
  const parts = params.map(({ name, type }, at) => {
    const { text, isThere } = values[at]!;
    const some = optionOf(type);
    try {
      if (some) return isThere ? `{"some":${jsonOf(text, some)}}` : "null";
      return jsonOf(text, type);
    } catch (error) {
      throw new Error(`${name}: ${(error as Error).message}`);
    }
  });
  return `[${parts.join(",")}]`;
}

function jsonOf(text: string, type: Type): string {
  const trimmed = text.trim();
  switch (kindOf(type)) {
    case "bool":
      return trimmed === "true" ? "true" : "false";
    case "integer":
      if (!/^-?\d+$/.test(trimmed)) throw new Error("a whole number is wanted");
      if (type.tag.endsWith("256")) return JSON.stringify(hexOf(BigInt(trimmed)));
      return BigInt(trimmed).toString();
    case "float":
      if (trimmed === "" || !Number.isFinite(Number(trimmed))) throw new Error("a number is wanted");
      return String(Number(trimmed));
    case "string":
      return JSON.stringify(text);
    case "bytes":
      return JSON.stringify(trimmed.replace(/^0x/i, ""));
    case "identity":
      if (!/^(0x)?[0-9a-f]{64}$/i.test(trimmed)) throw new Error("64 hex digits are wanted");
      return JSON.stringify([`0x${trimmed.replace(/^0x/i, "")}`]);
    case "connection id":
      if (!/^(0x)?[0-9a-f]{1,32}$/i.test(trimmed)) throw new Error("32 hex digits are wanted");
      return `[${BigInt(`0x${trimmed.replace(/^0x/i, "")}`)}]`;
    case "uuid": {
      const digits = trimmed.replaceAll("-", "");
      if (!/^[0-9a-f]{32}$/i.test(digits)) throw new Error("a UUID is wanted");
      return `[${BigInt(`0x${digits}`)}]`;
    }
    case "timestamp":
      return `[${microsOf(trimmed)}]`;
    case "duration":
      if (!/^-?\d+(\.\d+)?$/.test(trimmed)) throw new Error("a number of seconds is wanted");
      return `[${BigInt(Math.round(Number(trimmed) * 1e6))}]`;
    case "choice":
      return `{${JSON.stringify(trimmed)}:[]}`;
    default:
      return jsonText(parseJson(trimmed === "" ? "null" : trimmed));
  }
}

const hexOf = (value: bigint): string =>
  value < 0n ? `-0x${(-value).toString(16)}` : `0x${value.toString(16)}`;

function microsOf(text: string): bigint {
  if (/^-?\d+$/.test(text)) return BigInt(text);
  const millis = Date.parse(text);
  if (Number.isNaN(millis)) throw new Error("a time like 2026-01-31T12:00:00Z is wanted");
  return BigInt(millis) * 1000n;
}

const HINTS: Record<string, string> = {
  identity: "0x and 64 hex digits",
  "connection id": "32 hex digits",
  timestamp: "2026-01-31T12:00:00Z",
  duration: "seconds",
  bytes: "hex digits",
  other: "JSON",
};

export function Arguments(props: {
  params: readonly Field[];
  values: readonly Argument[];
  onChange: (values: Argument[]) => void;
}): ReactNode {
  const { params, values } = props;
  const change = (at: number, part: Partial<Argument>) =>
    props.onChange(values.map((value, index) => (index === at ? { ...value, ...part } : value)));
  if (params.length === 0) return <p className="dim">It takes no arguments.</p>;
  return (
    <div className="arguments">
      {params.map(({ name, type }, at) => {
        const some = optionOf(type);
        const { text, isThere } = values[at]!;
        return (
          <div key={at} className="field">
            <span>
              <label htmlFor={`argument-${at}`}>{name}</label> <em>{nameOf(type)}</em>
              {some && (
                <label className="check">
                  <input
                    type="checkbox"
                    checked={isThere}
                    onChange={(event) => change(at, { isThere: event.target.checked })}
                  />
                  has a value
                </label>
              )}
            </span>
            {isThere ? (
              <Input
                id={`argument-${at}`}
                type={some ?? type}
                text={text}
                onChange={(next) => change(at, { text: next })}
              />
            ) : (
              <Badge>none</Badge>
            )}
          </div>
        );
      })}
    </div>
  );
}

function Input(props: { id: string; type: Type; text: string; onChange: (text: string) => void }): ReactNode {
  const { id, type, text } = props;
  const kind = kindOf(type);
  const choices =
    kind === "bool"
      ? ["false", "true"]
      : kind === "choice" && type.tag === "Sum"
        ? type.value.variants.map(({ name }, at) => name ?? String(at))
        : undefined;
  if (choices) {
    return (
      <select id={id} value={text} onChange={(event) => props.onChange(event.target.value)}>
        {choices.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    );
  }
  if (kind === "other" || kind === "option" || (kind === "string" && text.includes("\n"))) {
    return (
      <textarea
        id={id}
        className="mono"
        rows={3}
        value={text}
        spellCheck={false}
        onChange={(event) => props.onChange(event.target.value)}
      />
    );
  }
  return (
    <input
      id={id}
      type="text"
      className={kind === "string" ? "" : "mono"}
      inputMode={kind === "integer" ? "numeric" : kind === "float" ? "decimal" : undefined}
      placeholder={HINTS[kind]}
      value={text}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => props.onChange(event.target.value)}
    />
  );
}
