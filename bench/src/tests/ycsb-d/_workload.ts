import { ycsbWorkload } from "../../workloads/ycsb/workload";

export const workload = ycsbWorkload("d");
