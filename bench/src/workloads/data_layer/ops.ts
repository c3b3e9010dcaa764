// The operations of data-layer, by the ways of asking.

import { call, connectionItself, found } from "../calls";
import { cachedNotes } from "./cached";
import { sdkNotes } from "./sdk";
import { noteOps } from "./workload";

export const noteRpcOps = noteOps(connectionItself);
export const noteCachedOps = noteOps(cachedNotes);
/** `bench_loop` finds the microseconds that a loop inside a procedure took, by the clock of the module. */
export const noteSdkOps = { ...noteOps(sdkNotes), bench_loop: call("bench_loop", found) };
