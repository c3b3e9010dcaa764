//! Content of the CRUD benchmark: records that are created, read, changed and deleted by id, by calls and over HTTP.
//! `content-ts` is the same in TypeScript.

mod routes;

use spacetimedb::{procedure, reducer, table, ProcedureContext, ReducerContext, Table, Timestamp};

#[table(accessor = content, public)]
pub struct Content {
    #[primary_key]
    pub id: String,
    pub title: String,
    pub body: String,
    pub author: Option<String>,
    pub status: Option<String>,
    /// JSON text.
    pub data: Option<String>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// The id comes from the client, which makes ULIDs as the REST servers do.
#[reducer]
pub fn content_create(
    ctx: &ReducerContext,
    id: String,
    title: String,
    body: String,
    author: Option<String>,
    status: Option<String>,
    data: Option<String>,
) -> Result<(), String> {
    let inserted = ctx.db.content().try_insert(Content {
        id,
        title,
        body,
        author,
        status,
        data,
        created_at: ctx.timestamp,
        updated_at: ctx.timestamp,
    });
    inserted.map(drop).map_err(|_| "exists".into())
}

#[reducer]
pub fn content_update(
    ctx: &ReducerContext,
    id: String,
    title: String,
    body: String,
    status: Option<String>,
) -> Result<(), String> {
    let by_id = ctx.db.content().id();
    let record = by_id.find(id).ok_or("missing")?;
    by_id.update(Content {
        title,
        body,
        status,
        updated_at: ctx.timestamp,
        ..record
    });
    Ok(())
}

#[reducer]
pub fn content_delete(ctx: &ReducerContext, id: String) -> Result<(), String> {
    match ctx.db.content().id().delete(id) {
        true => Ok(()),
        false => Err("missing".into()),
    }
}

#[procedure]
pub fn content_get(ctx: &mut ProcedureContext, id: String) -> Option<Content> {
    ctx.with_tx(|tx| tx.db.content().id().find(&id))
}

#[procedure]
pub fn content_count(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.content().count())
}

#[reducer]
pub fn content_clear(ctx: &ReducerContext) {
    ctx.db.content().clear();
}
