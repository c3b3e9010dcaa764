// The bench process speaks to MySQL or MariaDB itself: a pool, prepared statements, each committed by itself (section 15.5).

import mysql, { type ResultSetHeader, type RowDataPacket } from "mysql2/promise";
import { startMariadb } from "../init/mariadb";
import { readThenUpdate, valuesOf, type YcsbRow, ycsbColumns, ycsbFields } from "../rpc-servers/ycsb/store";
import { type YcsbClient, ycsbDatabaseDefinition } from "./ycsb_database";

const all = ycsbColumns.join(", ");

const createUsertable = `CREATE TABLE IF NOT EXISTS usertable (
  ycsb_key varchar(64) CHARACTER SET ascii COLLATE ascii_bin PRIMARY KEY,
  ${ycsbFields.map((field) => `${field} varchar(100) NOT NULL`).join(", ")}
) ENGINE=InnoDB`;

const statements = {
  read: `SELECT ${all} FROM usertable WHERE ycsb_key = ?`,
  scan: `SELECT ${all} FROM usertable WHERE ycsb_key >= ? ORDER BY ycsb_key LIMIT ?`,
  insert: `INSERT INTO usertable (${all}) VALUES (${ycsbColumns.map(() => "?").join(", ")})`,
  insertMany: `INSERT INTO usertable (${all}) VALUES ?`,
  count: "SELECT count(*) AS count FROM usertable",
};

/** Settings that say when a commit is on disk, under the names that MySQL and MariaDB have for them. */
const durabilitySettings = [
  ...["innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog"],
  ...["binlog_group_commit_sync_delay", "binlog_commit_wait_count", "binlog_commit_wait_usec"],
];
const isolationSettings = ["transaction_isolation", "tx_isolation"];

async function describe(pool: mysql.Pool) {
  const [found] = await pool.query<RowDataPacket[]>("SHOW VARIABLES");
  const settings = new Map(found.map((row) => [String(row["Variable_name"]), String(row["Value"])]));
  const isolation = isolationSettings.map((name) => settings.get(name)).find((value) => value !== undefined);
  const known = durabilitySettings.filter((name) => settings.has(name));
  const isLogDurable = settings.get("log_bin") === "OFF" || settings.get("sync_binlog") === "1";
  return {
    version: `${settings.get("version_comment") ?? ""} ${settings.get("version") ?? "unknown"}`.trim(),
    isolation: isolation?.toLowerCase().replace("-", " ") ?? "unknown",
    durability: known.map((name) => `${name}=${settings.get(name)}`).join(" "),
    isDurable: settings.get("innodb_flush_log_at_trx_commit") === "1" && isLogDurable,
  };
}

function clientOf(pool: mysql.Pool): YcsbClient {
  const rows = async (text: string, values: (string | number)[]) =>
    (await pool.execute<RowDataPacket[]>(text, values))[0] as unknown as YcsbRow[];
  const read = async (key: string) => (await rows(statements.read, [key]))[0];
  const update = async (key: string, field: string, value: string) => {
    const text = `UPDATE usertable SET ${field} = ? WHERE ycsb_key = ?`;
    const [{ affectedRows }] = await pool.execute<ResultSetHeader>(text, [value, key]);
    return affectedRows === 1;
  };
  return {
    async clear() {
      await pool.query(createUsertable);
      await pool.query("TRUNCATE TABLE usertable");
    },
    async insert(added) {
      if (added.length === 1) await pool.execute(statements.insert, valuesOf(added[0]!));
      else await pool.query(statements.insertMany, [added.map(valuesOf)]);
    },
    read,
    // As text: MySQL takes no floating-point number for LIMIT, and every number is sent as one.
    scan: (key, count) => rows(statements.scan, [key, String(count)]),
    update,
    readModifyWrite: readThenUpdate(read, update),
    async count() {
      const [found] = await pool.query<RowDataPacket[]>(statements.count);
      return Number(found[0]!["count"]);
    },
    describe: () => describe(pool),
    close: () => pool.end(),
  };
}

export const definition = ycsbDatabaseDefinition({
  key: "mysql_direct",
  urlVariable: "MYSQL_URL",
  transport: "MySQL protocol",
  defaultPort: 3306,
  startCommand:
    "start a MySQL or MariaDB and set MYSQL_URL=mysql://<user>:<password>@<host>:<port>/<database>",
  start: startMariadb,
  isShared: true,
  open: async (url, { poolMax }) =>
    clientOf(mysql.createPool({ uri: url, connectionLimit: poolMax, maxIdle: poolMax })),
});
