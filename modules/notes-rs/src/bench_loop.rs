//! The cost of a read without the way to the server: a loop inside one procedure, by the module's own clock.

use spacetimedb::{procedure, ProcedureContext, ReducerContext, Table};

use crate::crm_reads::{contact_by_id, contacts_of_company, leads_by_status, lowest_ids};
use crate::note_reads::{count_live, lowest_id, newest, newest_with_tags, note_by_id};
use crate::schema::{bench_crm_company, bench_crm_contact, note};

const PAGE_ROWS: u32 = 20;
const READ_COUNT: u8 = 8;

/// One read, by the number of its iteration; answers how many rows it found.
type Read<'a> = Box<dyn Fn(u32) -> usize + 'a>;

/// Ids in turn, not always the same.
fn ids_from(first: u64, count: u64) -> impl Fn(u32) -> u64 {
    move |iteration| first + u64::from(iteration) * 7 % count
}

/// By number: the order is part of the interface of `bench_loop`.
fn read(ctx: &ReducerContext, op: u8) -> Read<'_> {
    match op {
        // Nothing, to know the cost of the loop.
        0 => Box::new(|_| 1),
        // find_many
        1 => Box::new(|_| newest(ctx, PAGE_ROWS).len()),
        // find_unique
        2 => {
            let id_of = ids_from(lowest_id(), ctx.db.note().count());
            Box::new(move |iteration| usize::from(note_by_id(ctx, id_of(iteration)).is_some()))
        }
        // count
        3 => Box::new(|_| count_live(ctx) as usize),
        // find_many_include
        4 => Box::new(|_| newest_with_tags(ctx, PAGE_ROWS).len()),
        // Leads with the status qualified.
        5 => Box::new(|_| leads_by_status(ctx, "qualified", PAGE_ROWS).len()),
        // Contacts of a company.
        6 => {
            let id_of = ids_from(lowest_ids().company, ctx.db.bench_crm_company().count());
            Box::new(move |iteration| contacts_of_company(ctx, id_of(iteration), PAGE_ROWS).len())
        }
        // A contact.
        7 => {
            let id_of = ids_from(lowest_ids().contact, ctx.db.bench_crm_contact().count());
            Box::new(move |iteration| usize::from(contact_by_id(ctx, id_of(iteration)).is_some()))
        }
        _ => panic!("there are the operations 0 to {}, not {op}", READ_COUNT - 1),
    }
}

/// Does a read `iters` times in one transaction, and answers the microseconds from the start of that transaction to the start
/// of the next: each begins with the time of the server, and a module has no other clock.
#[procedure]
pub fn bench_loop(ctx: &mut ProcedureContext, op: u8, iters: u32) -> u64 {
    let started_at = ctx.with_tx(|tx| {
        let once = read(tx, op);
        for iteration in 0..iters {
            assert!(
                once(iteration) > 0,
                "operation {op} found nothing: is there data?"
            );
        }
        tx.timestamp
    });
    let ended_at = ctx.with_tx(|tx| tx.timestamp);
    let elapsed = ended_at.to_micros_since_unix_epoch() - started_at.to_micros_since_unix_epoch();
    elapsed.unsigned_abs()
}
