//! Rooms whose messages only their members see: a row-level security rule that joins, and tables to join in subscriptions.

use spacetimedb::{
    client_visibility_filter, reducer, table, Filter, Identity, ReducerContext, Table,
};

#[client_visibility_filter]
const MESSAGES_OF_MEMBERS: Filter = Filter::Sql(
    "SELECT message.* FROM message JOIN membership ON message.room = membership.room WHERE membership.member = :sender",
);

#[table(accessor = room, public)]
pub struct Room {
    #[primary_key]
    pub id: u32,
    pub open: bool,
}

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

#[table(accessor = message, public)]
pub struct Message {
    #[primary_key]
    #[auto_inc]
    pub id: u32,
    #[index(btree)]
    pub room: u32,
    pub author: Identity,
    pub text: String,
}

#[reducer]
pub fn put_room(ctx: &ReducerContext, id: u32, open: bool) {
    ctx.db.room().id().delete(id);
    ctx.db.room().insert(Room { id, open });
}

#[reducer]
pub fn enter(ctx: &ReducerContext, room: u32) {
    let member = ctx.sender();
    ctx.db.membership().insert(Membership {
        id: 0,
        room,
        member,
    });
}

#[reducer]
pub fn leave(ctx: &ReducerContext, room: u32) {
    let mine = ctx.db.membership().member().filter(ctx.sender());
    let gone: Vec<_> = mine.filter(|membership| membership.room == room).collect();
    for membership in gone {
        ctx.db.membership().id().delete(membership.id);
    }
}

#[reducer]
pub fn say(ctx: &ReducerContext, room: u32, text: String) {
    let author = ctx.sender();
    ctx.db.message().insert(Message {
        id: 0,
        room,
        author,
        text,
    });
}
