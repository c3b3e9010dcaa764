// Requests to the server that this page comes from. Nothing else is ever asked.

import { type Json, parseJson } from "./json";

/** The page is at `<prefix>/dashboard/`, the API at `<prefix>/v1`. */
export const SERVER = new URL("..", document.baseURI);
const API = new URL("v1/", SERVER);

/** An answer that is longer is not read to its end: the page must not run out of memory. */
export const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, text: string) {
    super(text);
    this.status = status;
  }
}

export interface Request {
  method?: string;
  token?: string | undefined;
  body?: BodyInit;
  json?: boolean;
  signal?: AbortSignal;
}

export interface Answer {
  text: string;
  headers: Headers;
  status: number;
  /** The body was longer than what is read. */
  isCut: boolean;
}

export async function request(path: string, options: Request = {}): Promise<Response> {
  const headers = new Headers();
  if (options.token) headers.set("authorization", `Bearer ${options.token}`);
  if (options.json) headers.set("content-type", "application/json");
  try {
    return await fetch(new URL(path, API), {
      method: options.method ?? "GET",
      headers,
      body: options.body ?? null,
      signal: options.signal ?? null,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
      referrerPolicy: "no-referrer",
    });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "The server does not answer.");
  }
}

/** The body as text, up to a bound. */
async function read(response: Response): Promise<{ text: string; isCut: boolean }> {
  const reader = response.body?.getReader();
  if (!reader) return { text: "", isCut: false };
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return { text: text + decoder.decode(), isCut: false };
    bytes += value.length;
    text += decoder.decode(value, { stream: true });
    if (bytes <= ANSWER_BYTES_MAX) continue;
    await reader.cancel();
    return { text, isCut: true };
  }
}

/** An answer whatever its status. */
export async function ask(path: string, options: Request = {}): Promise<Answer> {
  const response = await request(path, options);
  const { text, isCut } = await read(response);
  return { text, isCut, headers: response.headers, status: response.status };
}

/** The text of an answer that must be a success. */
export async function text(path: string, options: Request = {}): Promise<string> {
  const answer = await ask(path, options);
  if (answer.status < 200 || answer.status > 299) {
    throw new ApiError(
      answer.status,
      answer.text.trim() || `The server answered with status ${answer.status}.`,
    );
  }
  if (answer.isCut) throw new ApiError(answer.status, "The answer is too long to be shown.");
  return answer.text;
}

/** The bytes of an answer that must be a success. */
export async function blob(path: string, options: Request = {}): Promise<Blob> {
  const response = await request(path, options);
  if (response.ok) return response.blob();
  throw new ApiError(response.status, (await read(response)).text.trim());
}

export async function json(path: string, options: Request = {}): Promise<Json> {
  return parseJson(await text(path, options));
}

/** A part of a path that came from a name. */
export const part = (name: string): string => encodeURIComponent(name);

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
