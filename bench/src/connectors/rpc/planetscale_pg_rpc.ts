import { notWritten } from "../not_written";

export const definition = notWritten("planetscale_pg_rpc");
