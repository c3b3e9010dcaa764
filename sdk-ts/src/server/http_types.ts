import { BinaryReader } from "../core/binary_reader";
import { BinaryWriter } from "../core/binary_writer";
import { badTag } from "../core/errors";
import type { HttpMethod } from "../core/module_def";
import { decodeUtf8, encodeUtf8 } from "../core/utf8";
import { Headers } from "./headers";

// The messages of HTTP between module and host (spec 03 §13.1).

export type HttpVersion =
  | { tag: "Http09" }
  | { tag: "Http10" }
  | { tag: "Http11" }
  | { tag: "Http2" }
  | { tag: "Http3" };

/** A value for a body. */
export type BodyInit = ArrayBuffer | ArrayBufferView | string;

const METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"] as const;
const METHOD_TAGS = ["Get", "Head", "Post", "Put", "Delete", "Connect", "Options", "Trace", "Patch"] as const;
const EXTENSION = METHODS.length;
const VERSIONS = ["Http09", "Http10", "Http11", "Http2", "Http3"] as const;

export function methodFromText(text: string): HttpMethod {
  const known = (METHODS as readonly string[]).indexOf(text.toUpperCase());
  return known < 0 ? { tag: "Extension", value: text } : { tag: METHOD_TAGS[known]! };
}

export interface RequestParts {
  method: string;
  headers: Headers;
  timeoutMicros: bigint | undefined;
  uri: string;
  version: HttpVersion;
}

function writeHeaders(out: BinaryWriter, headers: Headers): void {
  const pairs = headers.raw();
  out.writeU32(pairs.length);
  for (const [name, value] of pairs) {
    out.writeString(name);
    out.writeUInt8Array(encodeUtf8(value));
  }
}

function readHeaders(reader: BinaryReader): Headers {
  const headers = new Headers();
  const count = reader.readU32();
  for (let i = 0; i < count; i++) {
    const name = reader.readString();
    const value = reader.readUInt8Array();
    headers.append(name, decodeUtf8(value, 0, value.length));
  }
  return headers;
}

function readVersion(reader: BinaryReader): HttpVersion {
  const tag = reader.readU8();
  const version = VERSIONS[tag];
  if (version === undefined) throw badTag(tag, "HttpVersion");
  return { tag: version };
}

export function encodeRequest(request: RequestParts): Uint8Array {
  const out = new BinaryWriter(256);
  const method = methodFromText(request.method);
  if (method.tag === "Extension") {
    out.writeU8(EXTENSION);
    out.writeString(method.value);
  } else {
    out.writeU8(METHOD_TAGS.indexOf(method.tag));
  }
  writeHeaders(out, request.headers);
  if (request.timeoutMicros === undefined) {
    out.writeU8(1);
  } else {
    out.writeU8(0);
    out.writeI64(request.timeoutMicros);
  }
  out.writeString(request.uri);
  out.writeU8(VERSIONS.indexOf(request.version.tag));
  return out.getBuffer();
}

export function decodeRequest(bytes: Uint8Array): RequestParts {
  const reader = new BinaryReader(bytes);
  const tag = reader.readU8();
  if (tag > EXTENSION) throw badTag(tag, "HttpMethod");
  const method = tag === EXTENSION ? reader.readString() : METHODS[tag]!;
  const headers = readHeaders(reader);
  const timeoutMicros = reader.readU8() === 0 ? reader.readI64() : undefined;
  const uri = reader.readString();
  return { method, headers, timeoutMicros, uri, version: readVersion(reader) };
}

export interface ResponseParts {
  headers: Headers;
  version: HttpVersion;
  code: number;
}

export function encodeResponse(response: ResponseParts): Uint8Array {
  const out = new BinaryWriter(128);
  writeHeaders(out, response.headers);
  out.writeU8(VERSIONS.indexOf(response.version.tag));
  out.writeU16(response.code);
  return out.getBuffer();
}

export function decodeResponse(bytes: Uint8Array): ResponseParts {
  const reader = new BinaryReader(bytes);
  const headers = readHeaders(reader);
  const version = readVersion(reader);
  return { headers, version, code: reader.readU16() };
}

/** The bytes of a body. */
export function bodyBytes(body: BodyInit | null | undefined): Uint8Array {
  if (body === null || body === undefined) return new Uint8Array(0);
  if (typeof body === "string") return encodeUtf8(body);
  if (ArrayBuffer.isView(body)) return new Uint8Array(body.buffer, body.byteOffset, body.byteLength);
  return new Uint8Array(body);
}
