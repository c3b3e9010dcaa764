//! Notes, their tags, and a log of what happened to them. `notes-ts` is the same in TypeScript. Every write appends to the
//! log in the same transaction; what returns something is a procedure.

use spacetimedb::{
    procedure, reducer, table, ProcedureContext, ReducerContext, SpacetimeType, Table, Timestamp,
};

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

#[derive(SpacetimeType)]
pub struct NoteWithTags {
    pub id: u64,
    pub title: String,
    pub deleted: bool,
    pub tags: Vec<String>,
}

const TAGS_PER_NOTE: u32 = 3;
/// Ids are looked through from the newest down, so many at a time.
const ID_STEP: u64 = 64;

fn insert_note(ctx: &ReducerContext, title: &str) -> u64 {
    let note = ctx.db.note().insert(Note {
        id: 0,
        title: title.to_owned(),
        deleted: false,
        created_at: ctx.timestamp,
    });
    note.id
}

fn log(ctx: &ReducerContext, op: &str, record_id: u64, payload: &str) {
    ctx.db.event_log().insert(EventLog {
        id: 0,
        model: "note".to_owned(),
        op: op.to_owned(),
        record_id,
        payload: payload.to_owned(),
        at: ctx.timestamp,
    });
}

fn create(ctx: &ReducerContext, title: &str) -> u64 {
    let id = insert_note(ctx, title);
    log(ctx, "create", id, title);
    id
}

/// The notes with a tag.
fn tagged(ctx: &ReducerContext, name: &str) -> Vec<Note> {
    let by_id = ctx.db.note().id();
    let tags = ctx.db.tag().name().filter(name);
    tags.filter_map(|tag| by_id.find(tag.note_id)).collect()
}

/// The newest live notes: indexes are read upwards, so this goes down in steps.
fn newest(ctx: &ReducerContext, limit: u32) -> Vec<Note> {
    let limit = limit as usize;
    let mut notes = Vec::with_capacity(limit.min(ID_STEP as usize));
    let mut end = highest_id(ctx);
    while notes.len() < limit && end > 0 {
        let start = end.saturating_sub(ID_STEP);
        let by_deleted = ctx.db.note().by_deleted();
        let mut step: Vec<Note> = by_deleted.filter((false, start + 1..=end)).collect();
        step.reverse();
        step.truncate(limit - notes.len());
        notes.extend(step);
        end = start;
    }
    notes
}

fn lowest_id(ctx: &ReducerContext) -> u64 {
    let by_deleted = ctx.db.note().by_deleted();
    let lowest = |deleted: bool| by_deleted.filter(deleted).next().map(|note| note.id);
    [lowest(false), lowest(true)]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(0)
}

/// Ids are given out one by one, and rows are removed all at once.
fn highest_id(ctx: &ReducerContext) -> u64 {
    (lowest_id(ctx) + ctx.db.note().count()).saturating_sub(1)
}

/// Replaces everything by `notes` notes with their tags; the first `grouped` have the tag `group`.
#[reducer]
pub fn note_seed(ctx: &ReducerContext, notes: u32, grouped: u32, group: String) {
    ctx.db.note().clear();
    ctx.db.tag().clear();
    ctx.db.event_log().clear();
    let tag = |note_id: u64, name: String| {
        ctx.db.tag().insert(Tag {
            id: 0,
            note_id,
            name,
        });
    };
    for index in 0..notes {
        let id = insert_note(ctx, &format!("note {index}"));
        tag(
            id,
            if index < grouped {
                group.clone()
            } else {
                "other".to_owned()
            },
        );
        for other in 1..TAGS_PER_NOTE {
            tag(id, format!("tag {other}"));
        }
    }
}

#[reducer]
pub fn note_create(ctx: &ReducerContext, title: String) {
    create(ctx, &title);
}

/// The same, for whoever wants to know the id.
#[procedure]
pub fn note_add(ctx: &mut ProcedureContext, title: String) -> u64 {
    ctx.with_tx(|tx| create(tx, &title))
}

/// Without the log.
#[reducer]
pub fn note_create_bare(ctx: &ReducerContext, title: String) {
    insert_note(ctx, &title);
}

#[reducer]
pub fn note_create_many(ctx: &ReducerContext, n: u32) {
    for index in 0..n {
        create(ctx, &format!("one of many {index}"));
    }
}

#[reducer]
pub fn note_update(ctx: &ReducerContext, id: u64, title: String) -> Result<(), String> {
    let by_id = ctx.db.note().id();
    let found = by_id.find(id).ok_or("missing")?;
    log(ctx, "update", id, &title);
    by_id.update(Note { title, ..found });
    Ok(())
}

#[reducer]
pub fn note_delete(ctx: &ReducerContext, id: u64) -> Result<(), String> {
    let by_id = ctx.db.note().id();
    let found = by_id.find(id).ok_or("missing")?;
    by_id.update(Note {
        deleted: true,
        ..found
    });
    log(ctx, "delete", id, "");
    Ok(())
}

#[reducer]
pub fn note_update_many(ctx: &ReducerContext, tag: String, title: String) {
    for found in tagged(ctx, &tag) {
        let title = title.clone();
        ctx.db.note().id().update(Note { title, ..found });
    }
    log(ctx, "update_many", 0, &tag);
}

#[reducer]
pub fn note_delete_many(ctx: &ReducerContext, tag: String) {
    for found in tagged(ctx, &tag) {
        ctx.db.note().id().update(Note {
            deleted: true,
            ..found
        });
    }
    log(ctx, "delete_many", 0, &tag);
}

#[procedure]
pub fn note_find_many(ctx: &mut ProcedureContext, limit: u32) -> Vec<Note> {
    ctx.with_tx(|tx| newest(tx, limit))
}

#[procedure]
pub fn note_get(ctx: &mut ProcedureContext, id: u64) -> Option<Note> {
    ctx.with_tx(|tx| tx.db.note().id().find(id))
}

/// Live notes.
#[procedure]
pub fn note_count(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.note().by_deleted().filter(false).count() as u64)
}

#[procedure]
pub fn note_find_include(ctx: &mut ProcedureContext, limit: u32) -> Vec<NoteWithTags> {
    ctx.with_tx(|tx| {
        let with_tags = |note: Note| NoteWithTags {
            tags: tx
                .db
                .tag()
                .note_id()
                .filter(note.id)
                .map(|tag| tag.name)
                .collect(),
            id: note.id,
            title: note.title,
            deleted: note.deleted,
        };
        newest(tx, limit).into_iter().map(with_tags).collect()
    })
}

/// The lowest id: the others follow it one by one.
#[procedure]
pub fn note_first(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| lowest_id(tx))
}

/// Entries of the log.
#[procedure]
pub fn note_events(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.event_log().count())
}
