import { notWritten } from "../not_written";

export const definition = notWritten("supabase_rpc");
