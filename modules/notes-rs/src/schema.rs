//! The tables of the module: notes with their tags, the five tables of data-layer-crm, and the log of both.

use spacetimedb::{table, ReducerContext, Table, Timestamp};

#[table(accessor = note, public, index(accessor = by_deleted, btree(columns = [deleted, id])))]
pub struct Note {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub title: String,
    pub deleted: bool,
    pub created_at: Timestamp,
}

#[table(accessor = tag, public)]
pub struct Tag {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    #[index(btree)]
    pub note_id: u64,
    #[index(btree)]
    pub name: String,
}

#[table(accessor = event_log, public)]
pub struct EventLog {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub model: String,
    pub op: String,
    pub record_id: u64,
    pub payload: String,
    pub at: Timestamp,
}

// Ids that refer to another table have an index, and the functions that write check them. Money is in cents.

#[table(accessor = bench_crm_company, public)]
pub struct BenchCrmCompany {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub name: String,
    pub domain: String,
    pub industry: String,
    pub size: u32,
    pub website: String,
    pub phone: String,
    pub status: String,
    pub created_at: Timestamp,
}

#[table(accessor = bench_crm_contact, public)]
pub struct BenchCrmContact {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub first_name: String,
    pub last_name: String,
    pub email: String,
    pub phone: String,
    pub title: String,
    #[index(btree)]
    pub company_id: u64,
    pub created_at: Timestamp,
}

#[table(accessor = bench_crm_lead, public, index(accessor = by_status, btree(columns = [status, id])))]
pub struct BenchCrmLead {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub title: String,
    pub source: String,
    pub status: String,
    pub value: u64,
    #[index(btree)]
    pub company_id: u64,
    #[index(btree)]
    pub contact_id: u64,
    pub created_at: Timestamp,
}

#[table(accessor = bench_crm_deal, public)]
pub struct BenchCrmDeal {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub title: String,
    pub stage: String,
    pub amount: u64,
    #[index(btree)]
    pub company_id: u64,
    #[index(btree)]
    pub contact_id: u64,
    pub close_at: Timestamp,
    pub created_at: Timestamp,
}

#[table(accessor = bench_crm_activity, public)]
pub struct BenchCrmActivity {
    #[primary_key]
    #[auto_inc]
    pub id: u64,
    pub kind: String,
    pub subject: String,
    pub body: String,
    #[index(btree)]
    pub deal_id: u64,
    #[index(btree)]
    pub contact_id: u64,
    pub done: bool,
    pub created_at: Timestamp,
}

/// Appends to the log; belongs to every write.
pub fn log(ctx: &ReducerContext, model: &str, op: &str, record_id: u64, payload: &str) {
    ctx.db.event_log().insert(EventLog {
        id: 0,
        model: model.to_owned(),
        op: op.to_owned(),
        record_id,
        payload: payload.to_owned(),
        at: ctx.timestamp,
    });
}
