//! A small program on the command line: it shows the people as they come, and adds the names that you type.

mod module_bindings;

use std::io::BufRead;

use module_bindings::*;
use spacetimedb_sdk::{DbContext, Table};

fn main() {
    let setting = |name: &str, default: &str| std::env::var(name).unwrap_or(default.into());
    let connection = DbConnection::builder()
        .with_uri(setting("SPACETIMEDB_HOST", "http://127.0.0.1:3000"))
        .with_database_name(setting("SPACETIMEDB_DB_NAME", "{{database}}"))
        .on_connect(|_, identity, _token| println!("Connected as {identity}"))
        .on_connect_error(|_, error| {
            eprintln!("Cannot connect: {error}");
            std::process::exit(1);
        })
        .build()
        .expect("a connection");

    connection.db.person().on_insert(|_, person| println!("+ {}", person.name));
    connection
        .subscription_builder()
        .on_applied(|_| println!("Type a name and press Enter; end with Ctrl-C."))
        .on_error(|_, error| eprintln!("The subscription failed: {error}"))
        .subscribe("SELECT * FROM person");
    let thread = connection.run_threaded();

    for name in std::io::stdin().lock().lines().map_while(Result::ok) {
        // The module refuses an empty name, and its reason comes back.
        let added = connection.reducers.add_then(name, |_, outcome| {
            if let Ok(Err(reason)) = outcome {
                eprintln!("{reason}");
            }
        });
        if let Err(error) = added {
            eprintln!("Cannot add: {error}");
        }
    }
    thread.join().expect("the connection's thread");
}
