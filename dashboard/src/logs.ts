// The log of a module, line by line as it is written.

import * as api from "./api";
import { isObject } from "./json";

export const LEVELS = ["Panic", "Error", "Warn", "Info", "Debug", "Trace"] as const;

export interface Line {
  id: number;
  level: string;
  at: number;
  target: string;
  func: string;
  place: string;
  message: string;
  trace: string[];
  isHost: boolean;
}

/** A line that is longer is cut: a module decides how long its lines are. */
const MESSAGE_MAX = 20_000;
/** Bytes without an end of line. */
const LINE_MAX = 1024 * 1024;

let lastId = 0;

export function lineOf(text: string): Line | undefined {
  try {
    const json: unknown = JSON.parse(text);
    if (!isObject(json)) return undefined;
    const string = (name: string) => (typeof json[name] === "string" ? (json[name] as string) : "");
    const isHost = string("target") === "__spacetimedb__";
    const trace = Array.isArray(json["trace"]) ? json["trace"].filter(isObject) : [];
    return {
      id: ++lastId,
      level: string("level"),
      at: Number(json["ts"] ?? 0) / 1000,
      target: isHost ? "host" : string("target"),
      func: string("function") === "__spacetimedb__" ? "" : string("function"),
      place: isHost || string("filename") === "" ? "" : `${string("filename")}:${json["line_number"] ?? ""}`,
      message: string("message").slice(0, MESSAGE_MAX),
      trace: trace.slice(0, 50).map((one) => `${one["func_name"] ?? "?"} (${one["module_name"] ?? "?"})`),
      isHost,
    };
  } catch {
    return undefined;
  }
}

async function open(
  database: string,
  token: string,
  query: string,
  signal: AbortSignal,
): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await api.request(`database/${api.part(database)}/logs?${query}`, { token, signal });
  if (response.status !== 200) throw new api.ApiError(response.status, (await response.text()).trim());
  return response.body!.getReader();
}

/** Calls `came` with lines, until `signal` ends it. */
export async function followLogs(
  database: string,
  token: string,
  count: number,
  signal: AbortSignal,
  came: (lines: Line[]) => void,
): Promise<void> {
  await readLines(await open(database, token, `follow=true&num_lines=${count}`, signal), came);
}

/** The last lines. */
export async function lastLogs(database: string, token: string, count: number): Promise<Line[]> {
  const text = await api.text(`database/${api.part(database)}/logs?num_lines=${count}`, { token });
  return text.split("\n").flatMap((line) => lineOf(line) ?? []);
}

async function readLines(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  came: (lines: Line[]) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + decoder.decode(value, { stream: true })).split("\n");
    rest = parts.pop()!.slice(-LINE_MAX);
    const lines = parts.flatMap((part) => lineOf(part) ?? []);
    if (lines.length > 0) came(lines);
  }
}
