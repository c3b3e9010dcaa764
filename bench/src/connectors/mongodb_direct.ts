// The bench process speaks to MongoDB itself (section 15.5). No package registry has its server: it runs where MONGODB_URL
// says.

import { type Collection, MongoClient, type WriteConcernSettings } from "mongodb";
import type { Config } from "../config";
import { readThenUpdate, type YcsbRow, ycsbFields } from "../rpc-servers/ycsb/store";
import { type YcsbClient, ycsbDatabaseDefinition } from "./ycsb_database";

const connectMilliseconds = 5_000;
const publishedCommitInterval = 2;

type Document = { _id: string } & Omit<YcsbRow, "ycsb_key">;

const documentOf = ({ ycsb_key, ...fields }: YcsbRow): Document => ({ _id: ycsb_key, ...fields });
const rowOf = ({ _id, ...fields }: Document): YcsbRow => ({ ycsb_key: _id, ...fields });
const projection = Object.fromEntries(ycsbFields.map((field) => [field, 1]));

const concernOf = ({ durability }: Pick<Config, "durability">): WriteConcernSettings =>
  durability === "on" ? { w: 1, journal: true } : { w: 0 };

const connect = (url: string, config: Config) =>
  MongoClient.connect(url, {
    maxPoolSize: config.poolMax,
    serverSelectionTimeoutMS: connectMilliseconds,
    writeConcern: concernOf(config),
    // A repeated write would hide a failure.
    retryWrites: false,
    retryReads: false,
  });

function clientOf(client: MongoClient, config: Config): YcsbClient {
  const usertable: Collection<Document> = client.db().collection("usertable");
  const read = async (key: string) => {
    const found = await usertable.findOne({ _id: key }, { projection });
    return found ? rowOf(found) : undefined;
  };
  const update = async (key: string, field: string, value: string) => {
    const { acknowledged, matchedCount } = await usertable.updateOne(
      { _id: key },
      { $set: { [field]: value } },
    );
    // Without an acknowledgement it is not known.
    return !acknowledged || matchedCount === 1;
  };
  return {
    async clear() {
      await usertable.drop();
    },
    async insert(rows) {
      await usertable.insertMany(rows.map(documentOf));
    },
    read,
    scan: async (key, count) => {
      const from = usertable.find({ _id: { $gte: key } }, { projection });
      return (await from.sort({ _id: 1 }).limit(count).toArray()).map(rowOf);
    },
    update,
    readModifyWrite: readThenUpdate(read, update),
    count: () => usertable.countDocuments({}),
    async describe() {
      const { version } = await client.db("admin").command({ buildInfo: 1 });
      const interval = await commitInterval(client);
      const found = interval === undefined ? "not known" : `${interval} ms`;
      const isDurable = config.durability === "on";
      return {
        version: `MongoDB ${version}`,
        isolation: "single document",
        durability: isDurable
          ? `w=1 j=true journalCommitInterval=${interval ?? "unknown"}`
          : "w=0: writes are not acknowledged, their number says nothing",
        isDurable,
        warnings:
          interval === publishedCommitInterval
            ? []
            : [
                `the journal's commit interval is ${found}; the published rows had ${publishedCommitInterval} ms`,
              ],
      };
    },
    close: () => client.close(),
  };
}

/** Milliseconds between two commits of the journal; undefined where the server does not say. */
async function commitInterval(client: MongoClient): Promise<number | undefined> {
  try {
    const answer = await client.db("admin").command({ getParameter: 1, journalCommitInterval: 1 });
    return Number(answer["journalCommitInterval"]);
  } catch {
    return undefined;
  }
}

export const definition = ycsbDatabaseDefinition({
  key: "mongodb_direct",
  urlVariable: "MONGODB_URL",
  transport: "MongoDB protocol",
  defaultPort: 27017,
  startCommand:
    "start it with `mongod --dbpath <directory> --setParameter journalCommitInterval=2`, and set " +
    "MONGODB_URL=mongodb://127.0.0.1:27017/ycsb",
  isShared: true,
  open: async (url, config) => clientOf(await connect(url, config), config),
});
