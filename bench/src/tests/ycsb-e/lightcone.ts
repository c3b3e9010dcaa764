import { lightconeYcsb } from "../../workloads/ycsb/lightcone";

export default lightconeYcsb;
