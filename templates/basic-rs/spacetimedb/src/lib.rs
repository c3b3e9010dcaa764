use spacetimedb::{reducer, table, ReducerContext, Table};

/// The tables of the database. Reducers, and only they, change them.
#[table(accessor = person, public)]
pub struct Person {
    name: String,
}

/// Runs once, when the database is created.
#[reducer(init)]
pub fn init(_ctx: &ReducerContext) {}

/// Runs when a client connects.
#[reducer(client_connected)]
pub fn identity_connected(ctx: &ReducerContext) {
    log::info!("{} connected", ctx.sender());
}

/// Runs when a client has gone.
#[reducer(client_disconnected)]
pub fn identity_disconnected(ctx: &ReducerContext) {
    log::info!("{} disconnected", ctx.sender());
}

/// Clients call these.
#[reducer]
pub fn add(ctx: &ReducerContext, name: String) {
    ctx.db.person().insert(Person { name });
}

#[reducer]
pub fn say_hello(ctx: &ReducerContext) {
    for person in ctx.db.person().iter() {
        log::info!("Hello, {}!", person.name);
    }
    log::info!("Hello, World!");
}
