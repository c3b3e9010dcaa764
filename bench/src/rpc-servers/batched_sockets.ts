// The WebSocket side of `sqlite_batched_rpc`: binary frames are transfers (section 13); text frames are calls of any batched
// method, `[[id, name, args], …]`, answered by `[[id, result], …]`, with an error as a third element.

import type { WebSocket } from "ws";
import { answerBytes, readRequests, writeAnswer } from "./batched_frames";
import type { Batcher } from "./batcher";
import type { RpcArguments, RpcMethods } from "./rpc";

type TextCall = [id: number, name: string, args: RpcArguments];
export type TextAnswer = [id: number, result: unknown, error?: string];

/** Answers to transfers of one socket, gathered until the batch is over. */
class BinaryAnswers {
  #pairs: number[] = [];
  constructor(private readonly socket: WebSocket) {}

  add(id: number, answer: number): void {
    this.#pairs.push(id, answer);
  }

  readonly flush = () => {
    const count = this.#pairs.length / 2;
    const frame = new Uint8Array(count * answerBytes);
    const view = new DataView(frame.buffer);
    for (let i = 0; i < count; i++)
      writeAnswer(view, i * answerBytes, this.#pairs[2 * i]!, this.#pairs[2 * i + 1]!);
    this.#pairs = [];
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(frame);
  };
}

/** Answers to calls of one socket, gathered until all promises of the batch are settled. */
class TextAnswers {
  #answers: TextAnswer[] = [];
  constructor(private readonly socket: WebSocket) {}

  add(answer: TextAnswer): void {
    // Runs when no promise of this turn is left to be settled.
    if (this.#answers.length === 0) process.nextTick(() => this.#flush());
    this.#answers.push(answer);
  }

  #flush(): void {
    const frame = JSON.stringify(this.#answers);
    this.#answers = [];
    if (this.socket.readyState === this.socket.OPEN) this.socket.send(frame);
  }
}

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
  const binary = new BinaryAnswers(socket);
  const textAnswers = new TextAnswers(socket);

  const call = async ([id, name, args]: TextCall) => {
    try {
      const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
      if (!method) throw new Error(`unknown method: ${name}`);
      textAnswers.add([id, (await method(args ?? {})) ?? null]);
    } catch (error) {
      textAnswers.add([id, null, error instanceof Error ? error.message : String(error)]);
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
        binary.add(id, code);
        batcher.afterAnswers(binary.flush);
      };
      batcher.add({ from, to, amount, answer });
    }
  });
}
