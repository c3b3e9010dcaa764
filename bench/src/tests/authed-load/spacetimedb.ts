export { spacetimedbNotesCase as default } from "../../workloads/authed_load/cases";
