// The process in the background of `prep` and `services start`.

import "dotenv/config";
import { parseCommandLine } from "../opts";
import { hostServices } from "./services";

const commandLine = parseCommandLine("prep", process.argv.slice(2), process.env);
if (commandLine) {
  hostServices(commandLine.config, commandLine.test).catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
}
