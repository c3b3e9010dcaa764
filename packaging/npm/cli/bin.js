#!/usr/bin/env node
import { run } from "./index.js";

run(process.argv.slice(2));
