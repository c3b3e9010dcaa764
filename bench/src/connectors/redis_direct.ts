// The bench process speaks to Redis itself: a hash per record, a connection per worker. Of our own, beside the systems of
// section 15.5: hashes have no order, so that there are no scans.

import { createClient } from "@redis/client";
import { startRedis } from "../init/redis";
import { readThenUpdate, type YcsbRow, ycsbFields } from "../rpc-servers/ycsb/store";
import { type YcsbClient, ycsbDatabaseDefinition } from "./ycsb_database";

const prefix = "usertable:";
const keysPerScan = 1_000;

/** Redis itself would overwrite a record that is there, and make one that is missing. */
const insertScript = `if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV)) return 1`;
const updateScript = `if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 1`;

async function openClient(url: string): Promise<YcsbClient> {
  const client = createClient({
    url,
    socket: { reconnectStrategy: false },
    // The suite has a limit of its own, the same for every system; loading has none.
    commandOptions: { timeout: 0 },
  });
  // A lost connection fails the commands that wait for it; without a listener it would end the process.
  client.on("error", () => undefined);
  await client.connect();
  const insertSha = await client.scriptLoad(insertScript);
  const updateSha = await client.scriptLoad(updateScript);
  const run = (sha: string, key: string, values: string[]) =>
    client.evalSha(sha, { keys: [prefix + key], arguments: values });

  const read = async (key: string): Promise<YcsbRow | undefined> => {
    const found = await client.hGetAll(prefix + key);
    if (found["field0"] === undefined) return undefined;
    return { ycsb_key: key, ...(found as Omit<YcsbRow, "ycsb_key">) };
  };
  const update = async (key: string, field: string, value: string) =>
    (await run(updateSha, key, [field, value])) === 1;

  /** The keys of the records, page by page: other data of the database stays as it is. */
  async function* keys(): AsyncGenerator<string[]> {
    let cursor = "0";
    do {
      const page = await client.scan(cursor, { MATCH: `${prefix}*`, COUNT: keysPerScan });
      cursor = page.cursor;
      yield page.keys;
    } while (cursor !== "0");
  }

  return {
    async clear() {
      for await (const page of keys()) if (page.length > 0) await client.unlink(page);
    },
    async insert(rows) {
      const insertRow = async (row: YcsbRow) => {
        const values = ycsbFields.flatMap((field) => [field, row[field]]);
        if ((await run(insertSha, row.ycsb_key, values)) !== 1)
          throw new Error(`${row.ycsb_key} is there already`);
      };
      await Promise.all(rows.map(insertRow));
    },
    read,
    scan: () =>
      Promise.reject(new Error("redis_direct: a hash per record has no order, so there are no scans")),
    update,
    readModifyWrite: readThenUpdate(read, update),
    async count() {
      // A key may come twice.
      const found = new Set<string>();
      for await (const page of keys()) for (const key of page) found.add(key);
      return found.size;
    },
    async describe() {
      const info = await client.info("server");
      const { appendonly, appendfsync } = await client.configGet(["appendonly", "appendfsync"]);
      return {
        version: `Redis ${/^redis_version:(\S+)/m.exec(info)?.[1] ?? "unknown"}`,
        isolation: "serializable",
        durability: appendonly === "yes" ? `appendonly=yes appendfsync=${appendfsync}` : "appendonly=no",
        isDurable: appendonly === "yes" && appendfsync === "always",
      };
    },
    close: () => client.close(),
  };
}

export const definition = ycsbDatabaseDefinition({
  key: "redis_direct",
  urlVariable: "REDIS_URL",
  transport: "Redis protocol",
  defaultPort: 6379,
  startCommand: "start a Redis and set REDIS_URL=redis://<host>:<port>",
  start: startRedis,
  isShared: false,
  open: openClient,
});
