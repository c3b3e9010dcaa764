// A private Redis: a directory of this invocation, a free port of 127.0.0.1, gone when it is stopped.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext } from "../connectors/definition";
import { neededProgram } from "./debian_package";
import type { PrivateServer } from "./mariadb";
import { freePort, type Program } from "./processes";

const startAttemptsMax = 3;

/** Durable means that every command is in the synced log before it is answered; otherwise there is no log. */
const settingsOf = (isDurable: boolean) => [
  'save ""',
  ...(isDurable ? ["appendonly yes", "appendfsync always"] : ["appendonly no"]),
];

export async function startRedis(context: PrepareContext): Promise<PrivateServer> {
  const { config, say, processes, workDirectory } = context;
  const server = await neededProgram({
    program: "redis-server",
    package: "redis-server",
    name: "Redis",
    urlVariable: "REDIS_URL",
    say,
  });
  const directory = mkdtempSync(join(workDirectory, "redis-"));
  const password = randomBytes(18).toString("base64url");
  const remove = () => rmSync(directory, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 });

  const start = (port: number): Promise<Program> => {
    const lines = ["bind 127.0.0.1", `port ${port}`, `dir ${directory}`, `requirepass ${password}`];
    const file = join(directory, "redis.conf");
    writeFileSync(file, [...lines, ...settingsOf(config.durability === "on"), ""].join("\n"), {
      mode: 0o600,
    });
    return processes.start({
      name: "Redis",
      command: server,
      args: [file],
      workingDirectory: directory,
      logFile: join(directory, "server.log"),
      readyWhen: /Ready to accept connections/,
    });
  };

  try {
    for (let attempt = 1; ; attempt++) {
      const port = await freePort();
      try {
        const program = await start(port);
        say(`Redis on port ${port}, data in ${directory}`);
        return {
          url: `redis://:${password}@127.0.0.1:${port}`,
          dataDirectory: directory,
          processes: [program.pid],
          async stop() {
            await program.stop();
            remove();
            say(`Redis on port ${port} stopped, its data removed`);
          },
        };
      } catch (error) {
        if (attempt === startAttemptsMax) throw error;
      }
    }
  } catch (error) {
    remove();
    throw error;
  }
}
