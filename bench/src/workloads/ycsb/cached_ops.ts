// YCSB with all records in the client's cache (section 15.5): reads and scans ask no server, writes are reducers.

import { setImmediate } from "node:timers/promises";
import type { Connector } from "../../connectors/connector";
import { cachedTable, RowsByKey } from "../cached_table";
import { many, one, perConnection } from "../calls";
import type { RunOperation } from "../workload";
import { ycsbSdkOps } from "./ops";

interface Row {
  ycsbKey: string;
  [field: string]: string;
}

/** Reads that follow each other at once let nothing else happen, neither the clock of the seconds nor updates. */
const readsInRowMax = 256;

interface Cache {
  rows: RowsByKey<Row, string>;
  reads: number;
}

const cacheOf = perConnection((connection): Cache => {
  const rows = new RowsByKey(cachedTable<Row>(connection, "usertable"), ({ ycsbKey }) => ycsbKey);
  return { rows, reads: 0 };
});

async function rowsToRead(connection: Connector): Promise<Cache["rows"]> {
  const cache = cacheOf(connection);
  if (++cache.reads % readsInRowMax === 0) await setImmediate();
  return cache.rows;
}

const read: RunOperation = async (connection, args) =>
  one((await rowsToRead(connection)).get(String(args["key"])), args);

const scan: RunOperation = async (connection, args) =>
  many((await rowsToRead(connection)).from(String(args["key"]), Number(args["count"])), args);

/** What the server counts; the cache must have as many. */
const count: RunOperation = async (connection) => {
  const found = Number(await connection.call("ycsb_count"));
  const cached = cacheOf(connection).rows.size;
  if (cached !== found) throw new Error(`the cache has ${cached} records, the server ${found}`);
  return { ok: true, found };
};

export const ycsbCachedOps: Record<string, RunOperation> = { ...ycsbSdkOps, read, scan, count };
