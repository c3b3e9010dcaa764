// `pnpm run services start|stop|status`; `host` is the process in the background.

import "dotenv/config";
import { UsageError } from "../config";
import { runProgram } from "../program";
import { hostServices, prepareServices, servicesState, stopServices } from "./services";
import { say } from "./session";

runProgram(import.meta.filename, async () => {
  const [command, ...flags] = process.argv.slice(2);
  switch (command) {
    case "start":
      return prepareServices(flags);
    case "host":
      await hostServices(flags);
      return 0;
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
      throw new UsageError(`services start|stop|status, not ${command ?? "nothing"}`);
  }
});
