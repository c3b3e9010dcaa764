//! What is read of the notes: by procedures, one read each, and by the loop of `bench_loop`.

use spacetimedb::{ReducerContext, SpacetimeType, Table};

use crate::ordered::NOTES;
use crate::schema::{note, tag, Note};

#[derive(SpacetimeType)]
pub struct NoteWithTags {
    pub id: u64,
    pub title: String,
    pub deleted: bool,
    pub tags: Vec<String>,
}

/// The newest live notes: indexes are read upwards, so this goes down in steps, which grow where few notes are alive.
pub fn newest(ctx: &ReducerContext, limit: u32) -> Vec<Note> {
    let by_deleted = ctx.db.note().by_deleted();
    let mut notes = Vec::new();
    let mut end = highest_id(ctx);
    let mut ids_per_step = u64::from(limit);
    while notes.len() < limit as usize && end > 0 {
        let start = end.saturating_sub(ids_per_step);
        let step: Vec<Note> = by_deleted.filter((false, start + 1..=end)).collect();
        let wanted = limit as usize - notes.len();
        notes.extend(step.into_iter().rev().take(wanted));
        end = start;
        ids_per_step *= 2;
    }
    notes
}

pub fn lowest_id() -> u64 {
    NOTES.filter(0u64..).next().map_or(0, |note| note.id)
}

/// Ids are given out one by one, and rows are removed all at once.
fn highest_id(ctx: &ReducerContext) -> u64 {
    (lowest_id() + ctx.db.note().count()).saturating_sub(1)
}

pub fn note_by_id(ctx: &ReducerContext, id: u64) -> Option<Note> {
    ctx.db.note().id().find(id)
}

/// Live notes: all but the deleted ones. The database knows how many rows a table has.
pub fn count_live(ctx: &ReducerContext) -> u64 {
    let notes = ctx.db.note();
    notes.count() - notes.by_deleted().filter(true).count() as u64
}

pub fn newest_with_tags(ctx: &ReducerContext, limit: u32) -> Vec<NoteWithTags> {
    let by_note = ctx.db.tag().note_id();
    let with_tags = |note: Note| NoteWithTags {
        tags: by_note.filter(note.id).map(|tag| tag.name).collect(),
        id: note.id,
        title: note.title,
        deleted: note.deleted,
    };
    newest(ctx, limit).into_iter().map(with_tags).collect()
}
