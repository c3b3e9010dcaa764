// `pnpm run prep [test] [--connectors list]`

import "dotenv/config";
import { runProgram } from "../program";
import { prepareServices } from "./services";

runProgram(import.meta.filename, () => prepareServices(process.argv.slice(2)));
