// A module of two workloads: notes for `data-layer`, customers for `data-layer-crm`.

export * from "./bench_loop";
export * from "./crm";
export * from "./notes";
export { default } from "./schema";
