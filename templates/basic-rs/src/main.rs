mod module_bindings;

use module_bindings::*;
use spacetimedb_sdk::{DbContext, Table};

fn main() {
    let host = std::env::var("SPACETIMEDB_HOST").unwrap_or("http://127.0.0.1:3000".into());
    let database = std::env::var("SPACETIMEDB_DB_NAME").unwrap_or("{{database}}".into());
    let name = std::env::args().nth(1).unwrap_or("Ada".into());

    let connection = DbConnection::builder()
        .with_uri(host.as_str())
        .with_database_name(database.as_str())
        .on_connect(|_, identity, _token| println!("Connected as {identity}"))
        .on_connect_error(|_, error| {
            eprintln!("Cannot connect: {error}");
            std::process::exit(1);
        })
        .on_disconnect(|_, error| match error {
            Some(error) => eprintln!("Disconnected: {error}"),
            None => println!("Disconnected"),
        })
        .build()
        .expect("a connection");

    connection.db.person().on_insert(|_, person| println!("Person: {}", person.name));

    connection
        .subscription_builder()
        .on_applied(move |ctx| {
            println!("There are {} people; adding {name}", ctx.db.person().count());
            if let Err(error) = ctx.reducers.add(name.clone()) {
                eprintln!("Cannot add: {error}");
            }
        })
        .on_error(|_, error| eprintln!("The subscription failed: {error}"))
        .subscribe("SELECT * FROM person");

    println!("Press Ctrl-C to stop. Run this again elsewhere to see more people come.");
    connection.run_threaded().join().expect("the connection's thread");
}
