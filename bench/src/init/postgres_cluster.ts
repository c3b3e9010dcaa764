// A private PostgreSQL: a fresh cluster in a directory of its own, on a free port of 127.0.0.1, gone when it is stopped.
// Its settings are those of a fresh installation, so every commit waits for its sync (section 12, "Further rules").

import { execFile } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { PostgresPrograms } from "./postgres_programs";
import { newPassword, onFreePort, removeDirectory } from "./private_server";
import { type ProcessGroup, type Program, sleep } from "./processes";

const run = promisify(execFile);

const initialiseMillisecondsMax = 60_000;
const stopMillisecondsMax = 10_000;
const restartAttemptsMax = 20;
const restartPauseMilliseconds = 250;
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

export interface PostgresCluster {
  url: string;
  port: number;
  directory: string;
  /** The process of the server; all others of it are its descendants. */
  pid(): number;
  /** Kills the server without warning and starts it again on the same data and port. */
  crash(): Promise<void>;
  stop(): Promise<void>;
}

interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** PostgreSQL refuses to run as root: then it runs as its own account, or as nobody. */
function unprivilegedAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const lines = readFileSync("/etc/passwd", "utf8").split("\n");
  const accounts = lines.map((line) => line.split(":"));
  for (const name of ["postgres", "nobody"]) {
    const fields = accounts.find((candidate) => candidate[0] === name);
    if (fields?.[2] !== undefined && fields[3] !== undefined) {
      return { name, uid: Number(fields[2]), gid: Number(fields[3]) };
    }
  }
  throw new Error("PostgreSQL does not run as root, and there is no account postgres or nobody to run it as");
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Removes what killed benchmarks left behind: the directories carry the process id of their maker. */
function sweep(parent: string, say: (line: string) => void): void {
  for (const name of readdirSync(parent)) {
    if (!name.startsWith(directoryPrefix)) continue;
    const maker = Number(name.slice(directoryPrefix.length).split("-")[0]);
    if (!Number.isInteger(maker) || maker <= 0 || isAlive(maker)) continue;
    const directory = join(parent, name);
    const server = serverOf(directory);
    if (server !== undefined && isAlive(server)) continue;
    say(`removing ${directory}, left behind by a benchmark that was killed`);
    rmSync(directory, { recursive: true, force: true });
  }
}

/** The process that PostgreSQL wrote down in its data directory. */
function serverOf(directory: string): number | undefined {
  const file = join(directory, "data", "postmaster.pid");
  if (!existsSync(file)) return undefined;
  const pid = Number(readFileSync(file, "utf8").split("\n")[0]);
  return Number.isInteger(pid) && pid > 0 ? pid : undefined;
}

/** Makes the data directory, and answers the password of its superuser. */
async function initialise(
  directory: string,
  programs: PostgresPrograms,
  account: Account | undefined,
): Promise<string> {
  const password = newPassword();
  const passwordFile = join(directory, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account) chownSync(passwordFile, account.uid, account.gid);
  // Not synced: what counts is what the server itself writes later, and that it syncs.
  const data = ["-D", join(directory, "data"), "-E", "UTF8", "--locale=C", "--no-sync"];
  const access = ["-U", "postgres", "-A", "scram-sha-256", `--pwfile=${passwordFile}`];
  await run(join(programs.directory, "initdb"), [...data, ...access], {
    ...(account ? { uid: account.uid, gid: account.gid } : {}),
    cwd: directory,
    timeout: initialiseMillisecondsMax,
  });
  rmSync(passwordFile);
  return password;
}

type Launch = (port: number) => Promise<Program>;

function launcher(options: ClusterOptions, directory: string, account: Account | undefined): Launch {
  const settings = {
    listen_addresses: "127.0.0.1",
    unix_socket_directories: directory,
    ...options.settings,
  };
  if (account && !existsSync(setpriv)) {
    throw new Error(
      `as root, ${setpriv} is needed to start PostgreSQL as ${account.name} (package util-linux)`,
    );
  }
  const identity = account
    ? ["--reuid", `${account.uid}`, "--regid", `${account.gid}`, "--clear-groups"]
    : [];
  const wrapper = existsSync(setpriv) ? [setpriv, "--pdeathsig", "INT", ...identity] : [];
  return (port) => {
    const server = [
      join(options.programs.directory, "postgres"),
      ...["-D", join(directory, "data"), "-p", String(port)],
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ];
    const [command = "", ...args] = [...wrapper, ...server];
    return options.processes.start({
      name: "PostgreSQL",
      command,
      args,
      workingDirectory: directory,
      logFile: join(directory, "postgres.log"),
      readyWhen: /database system is ready to accept connections/,
    });
  };
}

/** After a kill the new server must wait until the last process of the old one has let go of the memory they shared. */
async function launchAfterKill(launch: Launch, port: number): Promise<Program> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(port);
    } catch (error) {
      if (attempt === restartAttemptsMax) throw error;
      await sleep(restartPauseMilliseconds);
    }
  }
}

/** Fast shutdown: does not wait for clients, as SIGTERM would. */
async function endServer(program: Program): Promise<void> {
  if (program.isRunning()) process.kill(program.pid, "SIGINT");
  const deadline = Date.now() + stopMillisecondsMax;
  while (program.isRunning() && Date.now() < deadline) await sleep(20);
  await program.kill();
}

/** Makes a cluster and starts it. */
export async function startCluster(options: ClusterOptions): Promise<PostgresCluster> {
  const { say, programs } = options;
  const account = unprivilegedAccount();
  const parent = process.env["BENCH_DATA_DIR"] || (account ? rootParentDirectory : options.workDirectory);
  mkdirSync(parent, { recursive: true });
  sweep(parent, say);
  const directory = mkdtempSync(join(parent, `${directoryPrefix}${process.pid}-`));
  const remove = () => removeDirectory(directory);
  // Behind the end of the processes, which the session has registered before.
  process.once("exit", remove);
  const removeNow = () => {
    process.removeListener("exit", remove);
    remove();
  };
  try {
    if (account) chownSync(directory, account.uid, account.gid);
    const password = await initialise(directory, programs, account);
    const launch = launcher(options, directory, account);
    const launched = await onFreePort(launch);
    const { port } = launched;
    let server = launched.program;
    say(
      `PostgreSQL ${programs.version} on port ${port}${account ? ` as ${account.name}` : ""}, data in ${directory}`,
    );
    return {
      url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
      port,
      directory,
      pid: () => server.pid,
      async crash() {
        await server.kill();
        server = await launchAfterKill(launch, port);
      },
      async stop() {
        await endServer(server);
        removeNow();
        say(`PostgreSQL on port ${port} stopped, its data removed`);
      },
    };
  } catch (error) {
    removeNow();
    throw error;
  }
}
