import { notWritten } from "./not_written";

export const definition = notWritten("spacetimedb");
