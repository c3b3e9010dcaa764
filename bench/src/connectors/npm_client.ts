// The npm package `spacetimedb`, as any user has it.

import { setGlobalLogLevel } from "spacetimedb";
import { DbConnection } from "../../module_bindings";

setGlobalLogLevel("error");

export const npmBuilder = () => DbConnection.builder();
export const npmClient = "npm spacetimedb 2.10.1";
