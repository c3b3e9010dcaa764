// A private MariaDB: fresh data in a directory of this invocation, on a free port of 127.0.0.1, gone when it is stopped.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext } from "../connectors/definition";
import { runCommand } from "./commands";
import { neededProgram } from "./debian_package";
import { givenSettings } from "./postgres_database";
import { freePort, type Program } from "./processes";

/** A port may be taken by somebody else between the moment it was found free and the start. */
const startAttemptsMax = 3;
const database = "bench";
const user = "bench";

/**
 * The settings of section 15.5. The delay of a group commit is that of `binlog_group_commit_sync_delay`, which MySQL has and
 * MariaDB calls otherwise: wait 2 ms, whoever else commits.
 */
const durableSettings = {
  innodb_flush_log_at_trx_commit: "1",
  sync_binlog: "1",
  binlog_commit_wait_count: "1000",
  binlog_commit_wait_usec: "2000",
};
const otherSettings = { innodb_flush_log_at_trx_commit: "0", sync_binlog: "0" };

export interface PrivateServer {
  url: string;
  dataDirectory: string;
  processes: number[];
  stop(): Promise<void>;
}

export async function startMariadb(context: PrepareContext): Promise<PrivateServer> {
  const { config, say, processes, workDirectory } = context;
  // The packages of the programs alone: they start no service.
  const needed = { name: "MariaDB", urlVariable: "MYSQL_URL", say };
  const server = await neededProgram({ ...needed, program: "mariadbd", package: "mariadb-server-core" });
  const install = await neededProgram({
    ...needed,
    program: "mariadb-install-db",
    package: "mariadb-server-core",
  });
  // What the latter calls.
  await neededProgram({ ...needed, program: "my_print_defaults", package: "mariadb-client-core" });
  const directory = mkdtempSync(join(workDirectory, "mariadb-"));
  const data = join(directory, "data");
  const password = randomBytes(18).toString("base64url");
  // As root, it runs as root: the directory of this invocation may be closed to every other account.
  const identity = process.getuid?.() === 0 ? ["--user=root"] : [];
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });
  try {
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
    const settings: Record<string, string> = {
      ...(config.durability === "off" ? otherSettings : durableSettings),
      max_connections: String(Math.max(151, config.poolMax + 20)),
      ...givenSettings("MYSQL_SETTINGS"),
    };
    const start = (port: number): Promise<Program> =>
      processes.start({
        name: "MariaDB",
        command: server,
        args: [
          ...["--no-defaults", ...identity, `--datadir=${data}`, `--init-file=${initFile}`],
          ...["--bind-address=127.0.0.1", `--port=${port}`, "--skip-name-resolve"],
          // Relative to the data directory: the name of a socket must be short.
          ...["--socket=server.sock", `--pid-file=${join(directory, "server.pid")}`, "--log-bin=binlog"],
          ...Object.entries(settings).map(([name, value]) => `--${name.replaceAll("_", "-")}=${value}`),
        ],
        workingDirectory: directory,
        logFile: join(directory, "server.log"),
        readyWhen: /ready for connections/,
      });
    let port = await freePort();
    let program: Program | undefined;
    for (let attempt = 1; !program; attempt++) {
      try {
        program = await start(port);
      } catch (error) {
        if (attempt === startAttemptsMax) throw error;
        port = await freePort();
      }
    }
    const running = program;
    say(`MariaDB on port ${port}, data in ${directory}`);
    return {
      url: `mysql://${user}:${password}@127.0.0.1:${port}/${database}`,
      dataDirectory: data,
      processes: [running.pid],
      async stop() {
        await running.stop();
        remove();
        say(`MariaDB on port ${port} stopped, its data removed`);
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}
