import { badValue } from "../core/errors";
import type { TimeDuration } from "../core/time_duration";
import { decodeUtf8 } from "../core/utf8";
import { Headers, type HeadersInit } from "./headers";
import { type BodyInit, bodyBytes, decodeResponse, encodeRequest, type HttpVersion } from "./http_types";
import { sys } from "./sys";

export { type BodyInit, Headers, type HeadersInit };

/** Common to requests and responses. */
interface MessageInit {
  version?: HttpVersion;
  headers?: HeadersInit;
}

/** The options of a response. */
export interface ResponseInit extends MessageInit {
  status?: number;
  statusText?: string;
}

/** The content of a request. */
interface RequestContent {
  /** `GET` unless told otherwise. */
  method?: string;
  headers?: HeadersInit;
  body?: BodyInit | null;
}

/** The options of a request. */
export interface RequestInit extends MessageInit, RequestContent {}

/** Options of `ctx.http.fetch`. */
export interface RequestOptions extends RequestContent {
  /** After how long the request fails. */
  timeout?: TimeDuration;
}

/** HTTP requests from a procedure or handler. They wait for the answer. */
export interface HttpClient {
  fetch(url: URL | string, init?: RequestOptions): SyncResponse;
}

/** Common to requests and responses: the ways to read a body. */
class Body {
  readonly #bytes: Uint8Array;

  constructor(body: BodyInit | null | undefined) {
    this.#bytes = bodyBytes(body);
  }

  /** A copy of the body. */
  bytes(): Uint8Array<ArrayBuffer> {
    return new Uint8Array(this.#bytes);
  }

  arrayBuffer(): ArrayBuffer {
    return this.bytes().buffer;
  }

  text(): string {
    return decodeUtf8(this.#bytes, 0, this.#bytes.length);
  }

  json(): any {
    return JSON.parse(this.text());
  }
}

/** A response whose body is there at once: the answer to `fetch`, or what a handler returns. */
export class SyncResponse extends Body {
  readonly headers: Headers;
  readonly status: number;
  readonly statusText: string;
  readonly version: HttpVersion;
  readonly url: string = "";
  readonly type: "basic" | "cors" | "default" | "error" | "opaque" | "opaqueredirect" = "default";

  constructor(body?: BodyInit | null, init?: ResponseInit) {
    super(body);
    this.headers = new Headers(init?.headers);
    this.status = init?.status ?? 200;
    this.statusText = init?.statusText ?? "";
    this.version = init?.version ?? { tag: "Http11" };
    if (!Number.isInteger(this.status) || this.status < 100 || this.status > 999) {
      throw badValue(`${this.status} is not an HTTP status`);
    }
  }

  /** Whether the status says success. */
  get ok(): boolean {
    return this.status >= 200 && this.status < 300;
  }
}

/** A request that came to a handler. */
export class Request extends Body {
  readonly headers: Headers;
  readonly method: string;
  readonly uri: string;
  readonly version: HttpVersion;

  constructor(url: URL | string, init?: RequestInit) {
    super(init?.body);
    this.headers = new Headers(init?.headers);
    this.method = init?.method ?? "GET";
    this.uri = String(url);
    this.version = init?.version ?? { tag: "Http11" };
  }

  get url(): string {
    return this.uri;
  }
}

/** `ctx.http` */
export const httpClient: HttpClient = {
  fetch(url: URL | string, init: RequestOptions = {}): SyncResponse {
    const request = encodeRequest({
      method: init.method ?? "GET",
      headers: new Headers(init.headers),
      timeoutMicros: init.timeout?.micros,
      uri: String(url),
      version: { tag: "Http11" },
    });
    const body = typeof init.body === "string" ? init.body : bodyBytes(init.body);
    const [head, content] = sys.procedure_http_request(request, body);
    const { headers, code, version } = decodeResponse(head);
    return new SyncResponse(content, { headers, status: code, version });
  },
};
