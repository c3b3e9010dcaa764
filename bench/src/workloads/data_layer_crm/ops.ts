// The operations of data-layer-crm, by the ways of asking.

import { call, connectionItself, found } from "../calls";
import { sdkCrm } from "./sdk";
import { crmOps } from "./workload";

export const crmRpcOps = crmOps(connectionItself);
export const crmSdkOps = { ...crmOps(sdkCrm), bench_loop: call("bench_loop", found) };
