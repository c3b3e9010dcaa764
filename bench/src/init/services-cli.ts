// `pnpm run services start|stop|status`

import "dotenv/config";
import { prepare } from "./init-all";
import { servicesState, stopServices } from "./services";
import { say } from "./session";

async function main([command, ...flags]: string[]): Promise<number> {
  switch (command) {
    case "start":
      return prepare(flags);
    case "stop":
      say((await stopServices()) ? "stopped" : "nothing runs");
      return 0;
    case "status": {
      const state = servicesState();
      if (!state) say("nothing runs");
      for (const [key, { url, processes }] of Object.entries(state?.ready ?? {})) {
        say(`${key} at ${url}${processes ? `, processes ${processes.join(", ")}` : ""}`);
      }
      for (const [key, { reason }] of Object.entries(state?.failed ?? {}))
        say(`${key} is not ready: ${reason}`);
      return state ? 0 : 3;
    }
    default:
      throw new Error(`services start|stop|status, not ${command ?? "nothing"}`);
  }
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(`error: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  },
);
