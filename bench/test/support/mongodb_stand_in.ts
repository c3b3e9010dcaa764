// A stand-in for MongoDB: its wire protocol (OP_MSG), and as many commands as the connector sends, on a Map.

import type { AddressInfo } from "node:net";
import { createServer, type Socket } from "node:net";
import { BSON } from "mongodb";

interface Document {
  _id: string;
  [field: string]: unknown;
}

interface Command {
  name: string;
  writeConcern?: unknown;
}

export interface MongodbStandIn {
  url: string;
  /** Every command as it arrived. */
  commands: Command[];
  close(): Promise<void>;
}

const opMessage = 2013;
const opQuery = 2004;
const headerBytes = 16;
const moreToCome = 2;

type Body = Record<string, unknown>;

/** The command of a message, with its document sequences put in. */
function readMessage(message: Buffer): { body: Body; wantsAnswer: boolean } {
  const flags = message.readUInt32LE(headerBytes);
  let at = headerBytes + 4;
  let body: Body = {};
  while (at < message.length) {
    const kind = message[at++];
    const size = message.readInt32LE(at);
    const section = message.subarray(at, at + size);
    at += size;
    if (kind === 0) {
      body = { ...body, ...BSON.deserialize(section) };
      continue;
    }
    const nameEnd = section.indexOf(0, 4);
    const documents: unknown[] = [];
    for (let place = nameEnd + 1; place < size; place += section.readInt32LE(place)) {
      documents.push(BSON.deserialize(section.subarray(place, place + section.readInt32LE(place))));
    }
    body[section.toString("utf8", 4, nameEnd)] = documents;
  }
  return { body, wantsAnswer: (flags & moreToCome) === 0 };
}

function answer(to: number, body: Body): Buffer {
  const document = BSON.serialize(body);
  const message = Buffer.alloc(headerBytes + 5 + document.length);
  message.writeInt32LE(message.length, 0);
  message.writeInt32LE(to, 8);
  message.writeInt32LE(opMessage, 12);
  message.set(document, headerBytes + 5);
  return message;
}

/** The first message of a driver may be of an older kind; it is answered in kind. */
function answerOld(to: number, body: Body): Buffer {
  const document = BSON.serialize(body);
  const message = Buffer.alloc(headerBytes + 20 + document.length);
  message.writeInt32LE(message.length, 0);
  message.writeInt32LE(to, 8);
  message.writeInt32LE(1, 12);
  message.writeInt32LE(1, headerBytes + 16);
  message.set(document, headerBytes + 20);
  return message;
}

const hello = {
  ...{ ismaster: true, isWritablePrimary: true, minWireVersion: 0, maxWireVersion: 21 },
  ...{ maxBsonObjectSize: 16_777_216, maxMessageSizeBytes: 48_000_000, maxWriteBatchSize: 100_000 },
  ...{ readOnly: false, ok: 1 },
};

function run(records: Map<string, Document>, name: string, body: Body): Body {
  switch (name) {
    case "hello":
    case "ismaster":
    case "isMaster":
      return hello;
    case "buildInfo":
      return { version: "7.0.0-stand-in", ok: 1 };
    case "getParameter":
      return { journalCommitInterval: 100, ok: 1 };
    case "drop":
      records.clear();
      return { ok: 1 };
    case "insert": {
      const documents = body["documents"] as Document[];
      const index = documents.findIndex(({ _id }) => records.has(_id));
      if (index >= 0)
        return { n: 0, writeErrors: [{ index, code: 11000, errmsg: "E11000 duplicate key" }], ok: 1 };
      for (const document of documents) records.set(document._id, document);
      return { n: documents.length, ok: 1 };
    }
    case "update": {
      const [{ q, u }] = body["updates"] as [{ q: { _id: string }; u: { $set: Body } }];
      const found = records.get(q._id);
      if (found) records.set(q._id, { ...found, ...u.$set });
      return { n: found ? 1 : 0, nModified: found ? 1 : 0, ok: 1 };
    }
    case "find": {
      const { _id } = body["filter"] as { _id: string | { $gte: string } };
      const ids = typeof _id === "string" ? [_id] : [...records.keys()].sort().filter((id) => id >= _id.$gte);
      const limit = Number(body["limit"]) || ids.length;
      const firstBatch = ids.slice(0, limit).flatMap((id) => records.get(id) ?? []);
      return { cursor: { firstBatch, id: 0n, ns: "ycsb.usertable" }, ok: 1 };
    }
    case "aggregate": {
      const firstBatch = records.size === 0 ? [] : [{ _id: 1, n: records.size }];
      return { cursor: { firstBatch, id: 0n, ns: "ycsb.usertable" }, ok: 1 };
    }
    default:
      return { ok: 1 };
  }
}

export async function startMongodbStandIn(): Promise<MongodbStandIn> {
  const records = new Map<string, Document>();
  const commands: Command[] = [];
  const sockets = new Set<Socket>();

  const take = (message: Buffer): Buffer | undefined => {
    const id = message.readInt32LE(4);
    if (message.readInt32LE(12) === opQuery) return answerOld(id, hello);
    const { body, wantsAnswer } = readMessage(message);
    const name = Object.keys(body)[0]!;
    commands.push({ name, ...("writeConcern" in body && { writeConcern: body["writeConcern"] }) });
    const result = run(records, name, body);
    return wantsAnswer ? answer(id, result) : undefined;
  };

  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    let received = Buffer.alloc(0);
    socket.on("data", (chunk) => {
      received = Buffer.concat([received, chunk]);
      while (received.length >= 4 && received.length >= received.readInt32LE(0)) {
        const size = received.readInt32LE(0);
        const reply = take(received.subarray(0, size));
        received = received.subarray(size);
        if (reply) socket.write(reply);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `mongodb://127.0.0.1:${(server.address() as AddressInfo).port}/ycsb?directConnection=true`,
    commands,
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}
