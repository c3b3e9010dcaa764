// A private PostgreSQL: a fresh cluster in a directory of its own, on a free port of 127.0.0.1, gone when it is stopped.
// Its settings are those of a fresh installation, so every commit waits for its sync (section 12, "Further rules").

import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Started } from "../connectors/definition";
import { runCommand } from "./commands";
import type { PostgresPrograms } from "./postgres_programs";
import { startPrivateServer } from "./private_server";
import { isAlive, type ProcessGroup, removeAbandoned } from "./processes";

const initialiseMillisecondsMax = 60_000;
const directoryPrefix = "lightcone-bench-postgres-";
/** Open to every account, and on disk: /tmp may be memory, where a sync says nothing. */
const rootParentDirectory = "/var/tmp";
/** Has the kernel stop PostgreSQL when the suite is killed without a chance to do so. */
const setpriv = "/usr/bin/setpriv";

export interface ClusterOptions {
  programs: PostgresPrograms;
  /** What differs from a fresh installation, e.g. `default_transaction_isolation`. */
  settings: Record<string, string>;
  processes: ProcessGroup;
  /** Where the cluster's directory is made; root, whose directories are closed to others, gets one in /var/tmp. */
  workDirectory: string;
  say(line: string): void;
}

interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** Debian's account without rights has this id. */
const unprivilegedId = "65534";

/** PostgreSQL refuses to run as root: then it runs as its own account, or as one without rights. */
function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const accounts = readFileSync("/etc/passwd", "utf8")
    .split("\n")
    .map((line) => line.split(":"));
  const found =
    accounts.find(([name]) => name === "postgres") ?? accounts.find(([, , uid]) => uid === unprivilegedId);
  const [name, , uid, gid] = found ?? [];
  if (name !== undefined && uid !== undefined && gid !== undefined)
    return { name, uid: Number(uid), gid: Number(gid) };
  throw new Error(
    `PostgreSQL does not run as root, and there is no account postgres or one with the id ${unprivilegedId} to run it as`,
  );
}

/** Whether the process that PostgreSQL wrote down in its data directory is there. */
function isUsed(directory: string): boolean {
  const file = join(directory, "data", "postmaster.pid");
  return existsSync(file) && isAlive(Number(readFileSync(file, "utf8").split("\n")[0]));
}

/** Makes the data directory, with this password of its superuser. */
async function initialise(
  directory: string,
  password: string,
  programs: PostgresPrograms,
  account: Account | undefined,
): Promise<void> {
  const passwordFile = join(directory, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account) for (const path of [directory, passwordFile]) chownSync(path, account.uid, account.gid);
  // Not synced: what counts is what the server itself writes later, and that it syncs.
  const data = ["-D", join(directory, "data"), "-E", "UTF8", "--locale=C", "--no-sync"];
  const access = ["-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`];
  await runCommand(join(programs.directory, "initdb"), [...data, ...access], {
    ...(account ? { uid: account.uid, gid: account.gid } : {}),
    workingDirectory: directory,
    timeout: initialiseMillisecondsMax,
  });
  rmSync(passwordFile);
}

/** What starts the server: as the account, and so that it does not outlive the suite. */
function wrapperFor(account: Account | undefined): string[] {
  if (existsSync(setpriv)) {
    const identity = account
      ? ["--reuid", `${account.uid}`, "--regid", `${account.gid}`, "--clear-groups"]
      : [];
    return [setpriv, "--pdeathsig", "INT", ...identity];
  }
  if (!account) return [];
  throw new Error(
    `as root, ${setpriv} is needed to start PostgreSQL as ${account.name} (package util-linux)`,
  );
}

/** Makes a cluster and starts it. */
export async function startCluster(options: ClusterOptions): Promise<Started> {
  const { say, programs, workDirectory } = options;
  const account = unprivilegedAccount();
  const parent = process.env["BENCH_DATA_DIR"] || (account ? rootParentDirectory : workDirectory);
  mkdirSync(parent, { recursive: true });
  for (const directory of removeAbandoned(parent, directoryPrefix, isUsed))
    say(`removed ${directory}, left behind by a benchmark that was killed`);
  return startPrivateServer(options, {
    name: "PostgreSQL",
    details: ` ${programs.version}${account ? ` as ${account.name}` : ""}`,
    ...{ parent, prefix: `${directoryPrefix}${process.pid}-`, dataDirectory: "data" },
    readyWhen: /database system is ready to accept connections/,
    // Fast shutdown: does not wait for clients, as SIGTERM would.
    stopSignal: "SIGINT",
    url: (port, password) => `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    async make(directory, password) {
      await initialise(directory, password, programs, account);
      const own = { listen_addresses: "127.0.0.1", unix_socket_directories: directory };
      const settings = Object.entries({ ...own, ...options.settings });
      return (port) => [
        ...[...wrapperFor(account), join(programs.directory, "postgres")],
        ...["-D", join(directory, "data"), "-p", String(port)],
        ...settings.flatMap(([name, value]) => ["-c", `${name}=${value}`]),
      ];
    },
  });
}
