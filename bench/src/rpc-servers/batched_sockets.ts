// The WebSocket side of `sqlite_batched_rpc`: binary frames are transfers (section 13); text frames are calls of any batched
// method, `[[id, name, args], …]`, answered by `[[id, result], …]`, with an error as a third element.

import type { WebSocket } from "ws";
import { answerBytes, readRequests, writeAnswer } from "./batched_frames";
import type { Batcher } from "./batcher";
import type { RpcArguments, RpcMethods } from "./rpc";

type TextCall = [id: number, name: string, args: RpcArguments];
export type TextAnswer = [id: number, result: unknown, error?: string];

function readCalls(text: string): TextCall[] | undefined {
  try {
    const calls = JSON.parse(text) as unknown;
    const isCall = (call: unknown) =>
      Array.isArray(call) && call.length === 3 && Number.isInteger(call[0]) && typeof call[1] === "string";
    return Array.isArray(calls) && calls.every(isCall) ? (calls as TextCall[]) : undefined;
  } catch {
    return undefined;
  }
}

/** Serves one socket; `methods` queue their own work. */
export function serveBatchedSocket(socket: WebSocket, batcher: Batcher, methods: RpcMethods): void {
  const send = (frame: Uint8Array | string) => {
    if (socket.readyState === socket.OPEN) socket.send(frame);
  };

  /** Of transfers, gathered until the batch is over: ids and statuses. */
  let statuses: number[] = [];
  const flushStatuses = () => {
    const frame = new Uint8Array((statuses.length / 2) * answerBytes);
    const view = new DataView(frame.buffer);
    for (let i = 0; 2 * i < statuses.length; i++)
      writeAnswer(view, i * answerBytes, statuses[2 * i]!, statuses[2 * i + 1]!);
    statuses = [];
    send(frame);
  };

  /** Of calls, gathered until all promises of the batch are settled. */
  let answers: TextAnswer[] = [];
  const answerCall = (answer: TextAnswer) => {
    if (answers.length === 0) {
      // Runs when no promise of this turn is left to be settled.
      process.nextTick(() => {
        send(JSON.stringify(answers));
        answers = [];
      });
    }
    answers.push(answer);
  };
  const call = async ([id, name, args]: TextCall) => {
    try {
      const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
      if (!method) throw new Error(`unknown method: ${name}`);
      answerCall([id, (await method(args ?? {})) ?? null]);
    } catch (error) {
      answerCall([id, null, error instanceof Error ? error.message : String(error)]);
    }
  };

  socket.on("error", () => socket.terminate());
  socket.on("message", (data, isBinary) => {
    if (!isBinary) {
      const calls = readCalls(String(data));
      if (!calls) return socket.close(1003, "text frames are lists of [id, name, args]");
      for (const one of calls) void call(one);
      return;
    }
    const requests = readRequests(data as Buffer);
    if (!requests) return socket.close(1003, "binary frames are 20-byte records");
    for (const { id, from, to, amount } of requests) {
      const answer = (code: number) => {
        statuses.push(id, code);
        batcher.afterAnswers(flushStatuses);
      };
      batcher.add({ from, to, amount, answer });
    }
  });
}
