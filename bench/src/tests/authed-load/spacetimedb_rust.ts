export { rustNotesCase as default } from "../../workloads/authed_load/cases";
