// A private MariaDB.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext, Started } from "../connectors/definition";
import { runCommand } from "./commands";
import { foundOrInstalled } from "./debian_package";
import { givenSettings } from "./postgres_database";
import { startPrivateServer } from "./private_server";

const database = "bench";
const user = "bench";

/**
 * The settings of section 15.5. The delay of a group commit is that of `binlog_group_commit_sync_delay`, which MySQL has and
 * MariaDB calls otherwise: wait 2 ms for other transactions.
 */
const durableSettings = {
  innodb_flush_log_at_trx_commit: "1",
  sync_binlog: "1",
  binlog_commit_wait_count: "1000",
  binlog_commit_wait_usec: "2000",
};
const otherSettings = { innodb_flush_log_at_trx_commit: "0", sync_binlog: "0" };

export async function startMariadb(context: PrepareContext): Promise<Started> {
  const { config, say } = context;
  // The packages of the programs alone: they start no service.
  const needed = { name: "MariaDB", urlVariable: "MYSQL_URL", say };
  const ofServer = { ...needed, package: "mariadb-server-core" };
  const server = await foundOrInstalled({ ...ofServer, program: "mariadbd" });
  const install = await foundOrInstalled({ ...ofServer, program: "mariadb-install-db" });
  // What the latter calls.
  await foundOrInstalled({ ...needed, program: "my_print_defaults", package: "mariadb-client-core" });
  // As root, it runs as root: the directory of this invocation may be closed to every other account.
  const identity = process.getuid?.() === 0 ? ["--user=root"] : [];
  const settings: Record<string, string> = {
    ...(config.durability === "off" ? otherSettings : durableSettings),
    max_connections: String(Math.max(151, config.poolMax + 20)),
    ...givenSettings("MYSQL_SETTINGS"),
  };
  return startPrivateServer(context, {
    name: "MariaDB",
    readyWhen: /ready for connections/,
    dataDirectory: "data",
    async make(directory, password) {
      const data = join(directory, "data");
      await runCommand(install, [
        ...["--no-defaults", ...identity, `--datadir=${data}`],
        ...["--skip-test-db", "--auth-root-authentication-method=socket"],
      ]);
      const initFile = join(directory, "init.sql");
      const statements = [
        `CREATE DATABASE ${database};`,
        `CREATE USER '${user}'@'127.0.0.1' IDENTIFIED BY '${password}';`,
        `GRANT ALL ON ${database}.* TO '${user}'@'127.0.0.1';`,
      ];
      writeFileSync(initFile, `${statements.join("\n")}\n`, { mode: 0o600 });
      return (port) => [
        ...[server, "--no-defaults", ...identity, `--datadir=${data}`, `--init-file=${initFile}`],
        ...["--bind-address=127.0.0.1", `--port=${port}`, "--skip-name-resolve"],
        // Relative to the data directory: the name of a socket must be short.
        ...["--socket=server.sock", `--pid-file=${join(directory, "server.pid")}`, "--log-bin=binlog"],
        ...Object.entries(settings).map(([name, value]) => `--${name.replaceAll("_", "-")}=${value}`),
      ];
    },
    url: (port, password) => `mysql://${user}:${password}@127.0.0.1:${port}/${database}`,
  });
}
