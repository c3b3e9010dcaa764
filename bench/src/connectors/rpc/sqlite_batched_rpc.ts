import { notWritten } from "../not_written";

export const definition = notWritten("sqlite_batched_rpc");
