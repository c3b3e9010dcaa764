//! A module of two workloads: notes for `data-layer`, customers for `data-layer-crm`. `notes-ts` is the same in TypeScript.

mod bench_loop;
mod crm;
mod crm_reads;
mod note_reads;
mod notes;
mod ordered;
mod schema;
