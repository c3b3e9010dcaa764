import { lightconeContent } from "../../workloads/content/lightcone";

export default lightconeContent;
