// Payloads of the server: one byte says how the rest is compressed (chapter 05 §3.2).

import { ClientError } from "./client_error";

const TAG_NONE = 0;
const TAG_BROTLI = 1;
const TAG_GZIP = 2;

type Bytes = Uint8Array<ArrayBuffer>;

interface NodeZlib {
  brotliDecompress(data: Uint8Array, done: (error: Error | null, result: Bytes) => void): void;
}

/** Node, Bun and Deno hand out their zlib without an import that a bundler for browsers would stumble over. */
function nodeZlib(): NodeZlib | undefined {
  const { process } = globalThis as { process?: { getBuiltinModule?(name: string): unknown } };
  return process?.getBuiltinModule?.("node:zlib") as NodeZlib | undefined;
}

function hasStreamFormat(format: string): boolean {
  try {
    new DecompressionStream(format as CompressionFormat);
    return true;
  } catch {
    return false;
  }
}

/** Whether this platform can read Brotli; most browsers cannot. */
export function canReadBrotli(): boolean {
  return nodeZlib()?.brotliDecompress !== undefined || hasStreamFormat("brotli");
}

/** Whether this platform can read gzip. */
export function canReadGzip(): boolean {
  return hasStreamFormat("gzip");
}

/**
 * The body of a payload: at once when it is not compressed, otherwise when it is inflated.
 * The caller keeps the payloads in order.
 */
export function decompressPayload(payload: Bytes): Bytes | Promise<Bytes> {
  if (payload.length === 0) throw new ClientError("LC0843", "the server sent an empty message");
  const body = payload.subarray(1);
  switch (payload[0]) {
    case TAG_NONE:
      return body;
    case TAG_GZIP:
      return inflate(body, "gzip");
    case TAG_BROTLI: {
      const zlib = nodeZlib();
      return zlib ? inflateWithZlib(zlib, body) : inflate(body, "brotli");
    }
    default:
      throw new ClientError("LC0843", `the server used the unknown compression ${payload[0]}`);
  }
}

function inflateWithZlib(zlib: NodeZlib, body: Bytes): Promise<Bytes> {
  return new Promise((resolve, reject) =>
    zlib.brotliDecompress(body, (error, result) =>
      error ? reject(damaged("brotli", error)) : resolve(result),
    ),
  );
}

async function inflate(body: Bytes, format: string): Promise<Bytes> {
  let stream: ReadableStream<Bytes>;
  try {
    stream = new Blob([body]).stream().pipeThrough(new DecompressionStream(format as CompressionFormat));
  } catch (error) {
    throw new ClientError("LC0843", `this platform cannot read ${format}`, { cause: error });
  }
  try {
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch (error) {
    throw damaged(format, error);
  }
}

function damaged(format: string, cause: unknown): ClientError {
  return new ClientError("LC0843", `the server sent ${format} data that cannot be inflated`, { cause });
}
