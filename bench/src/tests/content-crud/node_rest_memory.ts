import { nodeRestDefinition, restCase } from "../../workloads/content/rest";

export default restCase(nodeRestDefinition("memory"), "Node.js, memory");
