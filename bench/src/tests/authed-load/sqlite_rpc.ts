export { sqliteNotesCase as default } from "../../workloads/authed_load/cases";
