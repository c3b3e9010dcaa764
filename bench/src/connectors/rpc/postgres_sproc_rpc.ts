import { notWritten } from "../not_written";

export const definition = notWritten("postgres_sproc_rpc");
