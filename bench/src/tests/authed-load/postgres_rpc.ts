export { postgresNotesCase as default } from "../../workloads/authed_load/cases";
