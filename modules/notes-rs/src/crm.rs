//! Companies, contacts, leads, deals and activities (section 18.2 of the benchmark chapter). Every write checks what it
//! refers to and the values of its enumerations, and appends to the log in the same transaction.

use spacetimedb::{
    procedure, reducer, ProcedureContext, ReducerContext, SpacetimeType, Table, Timestamp,
};

use crate::crm_reads::{contact_by_id, contacts_of_company, leads_by_status, lowest_ids, CrmIds};
use crate::schema::*;

const COMPANY_STATUSES: &[&str] = &["active", "inactive"];
const LEAD_STATUSES: &[&str] = &["new", "contacted", "qualified", "lost"];
const DEAL_STAGES: &[&str] = &["open", "won", "lost"];
const ACTIVITY_KINDS: &[&str] = &["call", "email", "meeting", "task"];

#[derive(SpacetimeType)]
pub struct Lead {
    pub title: String,
    pub source: String,
    pub status: String,
    pub value: u64,
    pub company_id: u64,
    pub contact_id: u64,
}

#[derive(SpacetimeType)]
pub struct CrmCounts {
    pub companies: u64,
    pub contacts: u64,
    pub leads: u64,
    pub deals: u64,
    pub activities: u64,
    pub events: u64,
}

fn check_enumeration(field: &str, value: &str, values: &[&str]) -> Result<(), String> {
    if values.contains(&value) {
        return Ok(());
    }
    Err(format!("{field} is {}, not {value}", values.join(", ")))
}

fn check_company(ctx: &ReducerContext, id: u64) -> Result<(), String> {
    let found = ctx.db.bench_crm_company().id().find(id);
    found
        .map(drop)
        .ok_or_else(|| format!("there is no company {id}"))
}

fn check_contact(ctx: &ReducerContext, id: u64) -> Result<(), String> {
    let found = ctx.db.bench_crm_contact().id().find(id);
    found
        .map(drop)
        .ok_or_else(|| format!("there is no contact {id}"))
}

fn check_deal(ctx: &ReducerContext, id: u64) -> Result<(), String> {
    let found = ctx.db.bench_crm_deal().id().find(id);
    found
        .map(drop)
        .ok_or_else(|| format!("there is no deal {id}"))
}

fn insert_lead(ctx: &ReducerContext, lead: Lead) -> Result<BenchCrmLead, String> {
    check_enumeration("status", &lead.status, LEAD_STATUSES)?;
    check_company(ctx, lead.company_id)?;
    check_contact(ctx, lead.contact_id)?;
    let inserted = ctx.db.bench_crm_lead().insert(BenchCrmLead {
        id: 0,
        title: lead.title,
        source: lead.source,
        status: lead.status,
        value: lead.value,
        company_id: lead.company_id,
        contact_id: lead.contact_id,
        created_at: ctx.timestamp,
    });
    Ok(inserted)
}

/// Replaces everything, the log too. Contacts go to companies in turn, leads to contacts, and statuses to leads.
#[reducer]
pub fn crm_seed(
    ctx: &ReducerContext,
    companies: u32,
    contacts: u32,
    leads: u32,
) -> Result<(), String> {
    ctx.db.bench_crm_activity().clear();
    ctx.db.bench_crm_deal().clear();
    ctx.db.bench_crm_lead().clear();
    ctx.db.bench_crm_contact().clear();
    ctx.db.bench_crm_company().clear();
    ctx.db.event_log().clear();
    let insert_company = |index: u32| {
        let domain = format!("company-{index}.example");
        let company = ctx.db.bench_crm_company().insert(BenchCrmCompany {
            id: 0,
            name: format!("Company {index}"),
            website: format!("https://{domain}"),
            domain,
            industry: "software".into(),
            size: index,
            phone: "+1 555 0100".into(),
            status: "active".into(),
            created_at: ctx.timestamp,
        });
        company.id
    };
    let company_ids: Vec<u64> = (0..companies).map(insert_company).collect();
    let company_of = |contact: u32| company_ids[(contact % companies) as usize];
    let insert_contact = |index: u32| {
        let contact = ctx.db.bench_crm_contact().insert(BenchCrmContact {
            id: 0,
            first_name: "First".into(),
            last_name: format!("Last {index}"),
            email: format!("contact-{index}@company.example"),
            phone: "+1 555 0101".into(),
            title: "Engineer".into(),
            company_id: company_of(index),
            created_at: ctx.timestamp,
        });
        contact.id
    };
    let contact_ids: Vec<u64> = (0..contacts).map(insert_contact).collect();
    for index in 0..leads {
        let contact = index % contacts;
        let lead = Lead {
            title: format!("Lead {index}"),
            source: "web".into(),
            status: LEAD_STATUSES[index as usize % LEAD_STATUSES.len()].into(),
            value: u64::from(index) * 100,
            company_id: company_of(contact),
            contact_id: contact_ids[contact as usize],
        };
        insert_lead(ctx, lead)?;
    }
    Ok(())
}

#[reducer]
#[allow(clippy::too_many_arguments)]
pub fn crm_create_company(
    ctx: &ReducerContext,
    name: String,
    domain: String,
    industry: String,
    size: u32,
    website: String,
    phone: String,
    status: String,
) -> Result<(), String> {
    check_enumeration("status", &status, COMPANY_STATUSES)?;
    let company = ctx.db.bench_crm_company().insert(BenchCrmCompany {
        id: 0,
        name,
        domain,
        industry,
        size,
        website,
        phone,
        status,
        created_at: ctx.timestamp,
    });
    log(ctx, "company", "create", company.id, &company.name);
    Ok(())
}

#[reducer]
pub fn crm_create_contact(
    ctx: &ReducerContext,
    first_name: String,
    last_name: String,
    email: String,
    phone: String,
    title: String,
    company_id: u64,
) -> Result<(), String> {
    check_company(ctx, company_id)?;
    let contact = ctx.db.bench_crm_contact().insert(BenchCrmContact {
        id: 0,
        first_name,
        last_name,
        email,
        phone,
        title,
        company_id,
        created_at: ctx.timestamp,
    });
    log(ctx, "contact", "create", contact.id, &contact.email);
    Ok(())
}

/// All or none, with an entry of the log for each.
#[reducer]
pub fn crm_create_leads(ctx: &ReducerContext, leads: Vec<Lead>) -> Result<(), String> {
    for lead in leads {
        let lead = insert_lead(ctx, lead)?;
        log(ctx, "lead", "create", lead.id, &lead.title);
    }
    Ok(())
}

#[reducer]
pub fn crm_create_deal(
    ctx: &ReducerContext,
    title: String,
    stage: String,
    amount: u64,
    company_id: u64,
    contact_id: u64,
    close_at: Timestamp,
) -> Result<(), String> {
    check_enumeration("stage", &stage, DEAL_STAGES)?;
    check_company(ctx, company_id)?;
    check_contact(ctx, contact_id)?;
    let deal = ctx.db.bench_crm_deal().insert(BenchCrmDeal {
        id: 0,
        title,
        stage,
        amount,
        company_id,
        contact_id,
        close_at,
        created_at: ctx.timestamp,
    });
    log(ctx, "deal", "create", deal.id, &deal.title);
    Ok(())
}

#[reducer]
pub fn crm_create_activity(
    ctx: &ReducerContext,
    kind: String,
    subject: String,
    body: String,
    deal_id: u64,
    contact_id: u64,
    done: bool,
) -> Result<(), String> {
    check_enumeration("kind", &kind, ACTIVITY_KINDS)?;
    check_deal(ctx, deal_id)?;
    check_contact(ctx, contact_id)?;
    let activity = ctx.db.bench_crm_activity().insert(BenchCrmActivity {
        id: 0,
        kind,
        subject,
        body,
        deal_id,
        contact_id,
        done,
        created_at: ctx.timestamp,
    });
    log(ctx, "activity", "create", activity.id, &activity.subject);
    Ok(())
}

#[procedure]
pub fn crm_find_leads(ctx: &mut ProcedureContext, status: String, limit: u32) -> Vec<BenchCrmLead> {
    ctx.with_tx(|tx| leads_by_status(tx, &status, limit))
}

#[procedure]
pub fn crm_find_contacts(
    ctx: &mut ProcedureContext,
    company_id: u64,
    limit: u32,
) -> Vec<BenchCrmContact> {
    ctx.with_tx(|tx| contacts_of_company(tx, company_id, limit))
}

#[procedure]
pub fn crm_get_contact(ctx: &mut ProcedureContext, id: u64) -> Option<BenchCrmContact> {
    ctx.with_tx(|tx| contact_by_id(tx, id))
}

#[procedure]
pub fn crm_first(ctx: &mut ProcedureContext) -> CrmIds {
    ctx.with_tx(|_tx| lowest_ids())
}

#[procedure]
pub fn crm_counts(ctx: &mut ProcedureContext) -> CrmCounts {
    ctx.with_tx(|tx| CrmCounts {
        companies: tx.db.bench_crm_company().count(),
        contacts: tx.db.bench_crm_contact().count(),
        leads: tx.db.bench_crm_lead().count(),
        deals: tx.db.bench_crm_deal().count(),
        activities: tx.db.bench_crm_activity().count(),
        events: tx.db.event_log().count(),
    })
}
