import { notWritten } from "../not_written";

export const definition = notWritten("node_memory_rpc");
