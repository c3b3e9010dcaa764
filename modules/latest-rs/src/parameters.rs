//! Views with parameters (2.13), and the reducers that change what they read. `modules/latest-ts` has the same.

use spacetimedb::{
    reducer, sats::u256, table, view, AnonymousViewContext, ConnectionId, Identity, Query,
    ReducerContext, SpacetimeType, Table, Timestamp, Uuid, ViewContext,
};

/// Only the views can read it.
#[table(accessor = note, index(accessor = by_room_and_owner, btree(columns = [room, owner])))]
pub struct Note {
    #[primary_key]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    pub owner: Identity,
    pub text: String,
}

/// Rooms that `open_notes` shows.
#[table(accessor = open_room)]
pub struct OpenRoom {
    #[primary_key]
    pub room: u32,
}

#[derive(SpacetimeType)]
pub struct Echo {
    pub text: String,
}

/// Cannot be written in SQL.
#[derive(SpacetimeType)]
pub struct Place {
    pub room: u32,
}

/// For all callers, by an index.
#[view(accessor = notes_in, public)]
fn notes_in(ctx: &AnonymousViewContext, room: u32) -> Vec<Note> {
    log::info!("notes_in({room}) runs");
    ctx.db.note().room().filter(room).collect()
}

/// Of the caller, with two parameters.
#[view(accessor = my_notes, public)]
fn my_notes(ctx: &ViewContext, room: u32, prefix: String) -> Vec<Note> {
    let mine = ctx.db.note().by_room_and_owner();
    mine.filter((room, ctx.sender()))
        .filter(|note| note.text.starts_with(&prefix))
        .collect()
}

/// A query, which the database keeps up to date.
#[view(accessor = note_query, public)]
fn note_query(ctx: &AnonymousViewContext, room: u32) -> impl Query<Note> {
    ctx.from.note().r#where(|note| note.room.eq(room))
}

/// A join.
#[view(accessor = open_notes, public)]
fn open_notes(ctx: &ViewContext, room: u32) -> impl Query<Note> {
    let sender = ctx.sender();
    ctx.from
        .note()
        .r#where(|note| note.room.eq(room))
        .r#where(|note| note.owner.eq(sender))
        .left_semijoin(ctx.from.open_room(), |note, open| note.room.eq(open.room))
}

/// What it was given.
#[view(accessor = echo, public)]
#[allow(clippy::too_many_arguments)]
fn echo(
    _ctx: &AnonymousViewContext,
    flag: bool,
    small: i8,
    large: u256,
    text: String,
    bytes: Vec<u8>,
    at: Timestamp,
    who: Identity,
    connection: ConnectionId,
    id: Uuid,
) -> Option<Echo> {
    let at = at.to_micros_since_unix_epoch();
    let (who, connection) = (who.to_hex(), connection.to_u128());
    Some(Echo {
        text: format!("{flag} {small} {large} {text} {bytes:?} {at} {who} {connection} {id}"),
    })
}

#[view(accessor = notes_at, public)]
fn notes_at(ctx: &AnonymousViewContext, place: Place) -> Vec<Note> {
    ctx.db.note().room().filter(place.room).collect()
}

/// Fails for odd numbers.
#[view(accessor = even_only, public)]
fn even_only(_ctx: &AnonymousViewContext, number: u32) -> Option<Echo> {
    assert!(number % 2 == 0, "{number} is odd");
    Some(Echo {
        text: number.to_string(),
    })
}

#[reducer]
pub fn put_note(ctx: &ReducerContext, id: u32, room: u32, owner: Identity, text: String) {
    let note = Note {
        id,
        room,
        owner,
        text,
    };
    match ctx.db.note().id().find(id) {
        Some(_) => ctx.db.note().id().update(note),
        None => ctx.db.note().insert(note),
    };
}

#[reducer]
pub fn take_note(ctx: &ReducerContext, id: u32) {
    ctx.db.note().id().delete(id);
}

/// Opens a room, or closes it.
#[reducer]
pub fn turn_room(ctx: &ReducerContext, room: u32) {
    if !ctx.db.open_room().room().delete(room) {
        ctx.db.open_room().insert(OpenRoom { room });
    }
}
