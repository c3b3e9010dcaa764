// The binary frames of `sqlite_batched_rpc` (section 13), shared by its server and its connector. All is little-endian.
//
//   request frame: n × 20 bytes   id u32 | from u32 | to u32 | amount i64
//   answer frame:  n × 5 bytes    id u32 | status u8

export const requestBytes = 20;
export const answerBytes = 5;

export const status = { applied: 0, insufficient: 1, invalid: 2, missing: 3, internal: 255 } as const;

export interface BatchedRequest {
  id: number;
  from: number;
  to: number;
  amount: number;
}

const twoTo32 = 4294967296;

export function writeRequest(frame: DataView, at: number, { id, from, to, amount }: BatchedRequest): void {
  frame.setUint32(at, id, true);
  frame.setUint32(at + 4, from, true);
  frame.setUint32(at + 8, to, true);
  frame.setUint32(at + 12, amount >>> 0, true);
  frame.setInt32(at + 16, Math.floor(amount / twoTo32), true);
}

/** The requests of a frame; undefined if its length is none of whole records. */
export function readRequests(frame: Uint8Array): BatchedRequest[] | undefined {
  if (frame.length % requestBytes !== 0) return undefined;
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  const requests: BatchedRequest[] = [];
  for (let at = 0; at < frame.length; at += requestBytes) {
    requests.push({
      id: view.getUint32(at, true),
      from: view.getUint32(at + 4, true),
      to: view.getUint32(at + 8, true),
      amount: view.getInt32(at + 16, true) * twoTo32 + view.getUint32(at + 12, true),
    });
  }
  return requests;
}

export function writeAnswer(frame: DataView, at: number, id: number, answer: number): void {
  frame.setUint32(at, id, true);
  frame.setUint8(at + 4, answer);
}

/** Calls `take` for each answer of a frame. */
export function readAnswers(frame: Uint8Array, take: (id: number, answer: number) => void): void {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  for (let at = 0; at + answerBytes <= frame.length; at += answerBytes) {
    take(view.getUint32(at, true), view.getUint8(at + 4));
  }
}
