//! What is read of the customers: by procedures, one read each, and by the loop of `bench_loop`.

use spacetimedb::{ReducerContext, SpacetimeType};

use crate::ordered::{COMPANIES, CONTACTS, DEALS};
use crate::schema::{bench_crm_contact, bench_crm_lead, BenchCrmContact, BenchCrmLead};

#[derive(SpacetimeType)]
pub struct CrmIds {
    pub company: u64,
    pub contact: u64,
    pub deal: u64,
}

/// The first leads with a status, in the order of their ids.
pub fn leads_by_status(ctx: &ReducerContext, status: &str, limit: u32) -> Vec<BenchCrmLead> {
    let leads = ctx.db.bench_crm_lead().by_status().filter(status);
    leads.take(limit as usize).collect()
}

pub fn contacts_of_company(
    ctx: &ReducerContext,
    company_id: u64,
    limit: u32,
) -> Vec<BenchCrmContact> {
    let contacts = ctx.db.bench_crm_contact().company_id().filter(company_id);
    contacts.take(limit as usize).collect()
}

pub fn contact_by_id(ctx: &ReducerContext, id: u64) -> Option<BenchCrmContact> {
    ctx.db.bench_crm_contact().id().find(id)
}

/// The lowest ids: the others follow them one by one. 0 where there is no row.
pub fn lowest_ids() -> CrmIds {
    CrmIds {
        company: COMPANIES.filter(0u64..).next().map_or(0, |row| row.id),
        contact: CONTACTS.filter(0u64..).next().map_or(0, |row| row.id),
        deal: DEALS.filter(0u64..).next().map_or(0, |row| row.id),
    }
}
