// A private Redis.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { PrepareContext, Started } from "../connectors/definition";
import { foundOrInstalled } from "./debian_package";
import { startPrivateServer } from "./private_server";

/** Durable means that every command is in the synced log before it is answered; otherwise there is no log. */
const settingsOf = (isDurable: boolean) => [
  'save ""',
  ...(isDurable ? ["appendonly yes", "appendfsync always"] : ["appendonly no"]),
];

export async function startRedis(context: PrepareContext): Promise<Started> {
  const { config, say } = context;
  const name = "Redis";
  const needed = { program: "redis-server", package: "redis-server", name, urlVariable: "REDIS_URL", say };
  const command = await foundOrInstalled(needed);
  return startPrivateServer(context, {
    name,
    readyWhen: /Ready to accept connections/,
    make: async (directory, password) => (port) => {
      const lines = ["bind 127.0.0.1", `port ${port}`, `dir ${directory}`, `requirepass ${password}`];
      const file = join(directory, "redis.conf");
      const settings = settingsOf(config.durability === "on");
      writeFileSync(file, [...lines, ...settings, ""].join("\n"), { mode: 0o600 });
      return [command, file];
    },
    url: (port, password) => `redis://:${password}@127.0.0.1:${port}`,
  });
}
