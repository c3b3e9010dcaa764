import { nodeRestDefinition, restCase } from "../../workloads/content/rest";

export default restCase(nodeRestDefinition("sqlite"), "Node.js, SQLite");
