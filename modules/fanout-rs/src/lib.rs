//! What the measurements of fan-out need: posts in rooms and at places, members of rooms, and a table under a row-level security
//! rule. Driven by `crates/loadgen/examples/live_queries`.

use spacetimedb::{
    client_visibility_filter, reducer, table, view, AnonymousViewContext, Filter, Identity, Query,
    ReducerContext, Table, ViewContext,
};

/// Members of a room see what is whispered in it.
#[client_visibility_filter]
const WHISPERS_OF_MEMBERS: Filter = Filter::Sql(
    "SELECT whisper.* FROM whisper JOIN membership ON whisper.room = membership.room WHERE membership.member = :sender",
);

/// All callers see open letters.
#[client_visibility_filter]
const OPEN_LETTERS: Filter = Filter::Sql("SELECT * FROM letter WHERE open = true");

#[table(accessor = membership, public)]
pub struct Membership {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    #[index(btree)]
    pub member: Identity,
}

#[table(accessor = post, public)]
pub struct Post {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    pub open: bool,
    #[index(btree)]
    pub room: u32,
    pub x: i32,
    pub y: i32,
    pub text: String,
}

#[table(accessor = whisper, public)]
pub struct Whisper {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    pub text: String,
}

#[table(accessor = letter, public)]
pub struct Letter {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    pub open: bool,
    #[index(btree)]
    pub room: u32,
    pub text: String,
}

/// The rooms of the caller.
#[view(accessor = my_rooms, public)]
fn my_rooms(ctx: &ViewContext) -> impl Query<Membership> {
    let sender = ctx.sender();
    ctx.from
        .membership()
        .r#where(|membership| membership.member.eq(sender))
}

/// The same for all callers: the open posts.
#[view(accessor = open_posts, public)]
fn open_posts(ctx: &AnonymousViewContext) -> impl Query<Post> {
    ctx.from.post().r#where(|post| post.open.eq(true))
}

#[reducer]
pub fn enter(ctx: &ReducerContext, room: u32, member: Identity) {
    ctx.db.membership().insert(Membership {
        id: 0,
        room,
        member,
    });
}

#[reducer]
pub fn send_post(ctx: &ReducerContext, room: u32, x: i32, y: i32, text: String) {
    ctx.db.post().insert(Post {
        id: 0,
        open: true,
        room,
        x,
        y,
        text,
    });
}

#[reducer]
pub fn send_whisper(ctx: &ReducerContext, room: u32, text: String) {
    ctx.db.whisper().insert(Whisper { id: 0, room, text });
}

#[reducer]
pub fn send_letter(ctx: &ReducerContext, room: u32, text: String) {
    ctx.db.letter().insert(Letter {
        id: 0,
        open: true,
        room,
        text,
    });
}
