import { restCase, restUrlDefinition } from "../../workloads/content/rest";

export default restCase(restUrlDefinition, "server of --base-url");
