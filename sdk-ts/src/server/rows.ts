import { BinaryReader } from "../core/binary_reader";
import { BinaryWriter, ResizableBuffer } from "../core/binary_writer";
import type { AnyDeserializer, AnyRow } from "../core/untyped";
import { sys } from "./sys";

const BUFFER_SIZE_BYTES = 65_536;
const MAX_POOLED_BUFFERS = 16;

/** Rows, keys and bounds on their way to the host, and single rows on their way back. */
export const scratch: BinaryWriter = /* @__PURE__ */ new BinaryWriter(BUFFER_SIZE_BYTES);
const scratchReader: BinaryReader = /* @__PURE__ */ new BinaryReader(new Uint8Array(0));

/** A reader at the start of the scratch buffer; only good until the next use of either. */
export function readScratch(): BinaryReader {
  const { view, bytes } = scratch.buffer;
  scratchReader.attach(view, bytes);
  return scratchReader;
}

const pool: ResizableBuffer[] = [];

/** Fills `buffer` from an iterator, making it larger where a chunk does not fit (spec 04 §4.3). */
export function advance(iterator: number, buffer: ResizableBuffer): number {
  for (;;) {
    try {
      return sys.row_iter_bsatn_advance(iterator, buffer.buffer);
    } catch (error) {
      const needed = (error as { __buffer_too_small__?: unknown } | null)?.__buffer_too_small__;
      if (typeof needed !== "number") throw error;
      buffer.grow(needed);
    }
  }
}

/** The rows of an iterator of the host; leaving early closes it. */
export function* scan(iterator: number, read: AnyDeserializer): Generator<AnyRow, undefined> {
  const buffer = pool.pop() ?? new ResizableBuffer(BUFFER_SIZE_BYTES);
  const reader = new BinaryReader(new Uint8Array(0));
  let open = true;
  try {
    while (open) {
      const filled = advance(iterator, buffer);
      open = filled > 0;
      const end = filled < 0 ? -filled : filled;
      reader.reset(buffer.bytes.subarray(0, end));
      while (reader.offset < end) yield read(reader);
    }
  } finally {
    if (open) sys.row_iter_bsatn_close(iterator);
    if (pool.length < MAX_POOLED_BUFFERS) pool.push(buffer);
  }
}
