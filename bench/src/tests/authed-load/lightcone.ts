export { lightconeNotesCase as default } from "../../workloads/authed_load/cases";
