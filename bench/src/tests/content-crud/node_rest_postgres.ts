import { nodeRestDefinition, restCase } from "../../workloads/content/rest";

export default restCase(nodeRestDefinition("postgres"), "Node.js, Postgres");
