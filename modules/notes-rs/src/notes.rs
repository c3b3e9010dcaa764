//! Notes and their tags (section 18.1 of the benchmark chapter). Every write appends to the log in the same transaction; what
//! returns something is a procedure.

use spacetimedb::{procedure, reducer, ProcedureContext, ReducerContext, Table};

use crate::note_reads::{
    count_live, lowest_id, newest, newest_with_tags, note_by_id, NoteWithTags,
};
use crate::schema::{event_log, log, note, tag, Note, Tag};

const TAGS_PER_NOTE: u32 = 3;

fn insert_note(ctx: &ReducerContext, title: &str) -> u64 {
    let note = ctx.db.note().insert(Note {
        id: 0,
        title: title.to_owned(),
        deleted: false,
        created_at: ctx.timestamp,
    });
    note.id
}

fn create(ctx: &ReducerContext, title: &str) -> u64 {
    let id = insert_note(ctx, title);
    log(ctx, "note", "create", id, title);
    id
}

/// The notes with a tag.
fn tagged(ctx: &ReducerContext, name: &str) -> Vec<Note> {
    let by_id = ctx.db.note().id();
    let tags = ctx.db.tag().name().filter(name);
    tags.filter_map(|tag| by_id.find(tag.note_id)).collect()
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
        let name = if index < grouped { &group } else { "other" };
        tag(id, name.to_owned());
        for other in 1..TAGS_PER_NOTE {
            tag(id, format!("tag {other}"));
        }
    }
}

#[reducer]
pub fn note_create(ctx: &ReducerContext, title: String) {
    create(ctx, &title);
}

/// The same, and returns the id.
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
    let updated = by_id.update(Note { title, ..found });
    log(ctx, "note", "update", id, &updated.title);
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
    log(ctx, "note", "delete", id, "");
    Ok(())
}

#[reducer]
pub fn note_update_many(ctx: &ReducerContext, tag: String, title: String) {
    for found in tagged(ctx, &tag) {
        let title = title.clone();
        ctx.db.note().id().update(Note { title, ..found });
    }
    log(ctx, "note", "update_many", 0, &tag);
}

#[reducer]
pub fn note_delete_many(ctx: &ReducerContext, tag: String) {
    for found in tagged(ctx, &tag) {
        ctx.db.note().id().update(Note {
            deleted: true,
            ..found
        });
    }
    log(ctx, "note", "delete_many", 0, &tag);
}

#[procedure]
pub fn note_find_many(ctx: &mut ProcedureContext, limit: u32) -> Vec<Note> {
    ctx.with_tx(|tx| newest(tx, limit))
}

#[procedure]
pub fn note_get(ctx: &mut ProcedureContext, id: u64) -> Option<Note> {
    ctx.with_tx(|tx| note_by_id(tx, id))
}

/// Live notes.
#[procedure]
pub fn note_count(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| count_live(tx))
}

#[procedure]
pub fn note_find_include(ctx: &mut ProcedureContext, limit: u32) -> Vec<NoteWithTags> {
    ctx.with_tx(|tx| newest_with_tags(tx, limit))
}

/// The lowest id: the others follow it one by one.
#[procedure]
pub fn note_first(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|_tx| lowest_id())
}

/// Entries of the log.
#[procedure]
pub fn note_events(ctx: &mut ProcedureContext) -> u64 {
    ctx.with_tx(|tx| tx.db.event_log().count())
}
