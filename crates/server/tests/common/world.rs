//! A server with a database of a founder, in which others have roles.

use std::net::SocketAddr;

use lightcone_node::permissions::Standing;
use lightcone_types::Hash;
use reqwest::RequestBuilder;

use super::{answer, config, TestServer, User};

pub const MODULE: &str = "module secret";
/// Another program with the same tables.
pub const OTHER: &str = "module secret other";

pub struct Person {
    /// None: he sends no token.
    pub user: Option<User>,
    pub standing: Standing,
    pub name: &'static str,
}

pub struct World {
    pub server: TestServer,
    pub postgres: SocketAddr,
    pub founder: User,
    pub reader: User,
    pub publisher: User,
    pub owner: User,
    pub stranger: User,
}

impl World {
    pub async fn new() -> World {
        let directory = tempfile::tempdir().expect("temporary directory");
        let server = TestServer::start_as(directory, config(""), |options| {
            options.postgres_addr = Some("127.0.0.1:0".parse().expect("an address"));
        })
        .await;
        let handle = server.handle.as_ref().expect("it runs");
        World {
            postgres: handle.postgres_addr().expect("it is on"),
            founder: server.user().await,
            reader: server.user().await,
            publisher: server.user().await,
            owner: server.user().await,
            stranger: server.user().await,
            server,
        }
    }

    /// A database of the founder, in which the others have their roles.
    pub async fn database(&self, name: &str) {
        let request = self.server.request("PUT", &format!("/v1/database/{name}"));
        let published = answer(request.bearer_auth(&self.founder.token).body(MODULE)).await;
        assert_eq!(published.0, 200, "{}", published.1);
        for (user, role) in [
            (&self.reader, "reader"),
            (&self.publisher, "publisher"),
            (&self.owner, "owner"),
        ] {
            let set = self.set_role(&self.founder, name, user, role).await;
            assert_eq!(set, (200, String::new()), "{role}");
        }
    }

    pub async fn set_role(&self, by: &User, name: &str, whom: &User, role: &str) -> (u16, String) {
        let path = format!("/v1/database/{name}/collaborators/{}", whom.identity);
        let request = self.server.request("PUT", &path).bearer_auth(&by.token);
        answer(request.body(format!("{{\"role\":\"{role}\"}}"))).await
    }

    pub async fn remove(&self, by: &User, name: &str, whom: &User) -> (u16, String) {
        let path = format!("/v1/database/{name}/collaborators/{}", whom.identity);
        answer(self.server.request("DELETE", &path).bearer_auth(&by.token)).await
    }

    pub fn people(&self) -> Vec<Person> {
        let person = |name, user: &User, standing| Person {
            user: Some(User {
                identity: user.identity.clone(),
                token: user.token.clone(),
            }),
            standing,
            name,
        };
        vec![
            Person {
                user: None,
                standing: Standing::Anyone,
                name: "without a token",
            },
            person("stranger", &self.stranger, Standing::Anyone),
            person("reader", &self.reader, Standing::Reader),
            person("publisher", &self.publisher, Standing::Publisher),
            person("owner", &self.owner, Standing::Owner),
            person("founder", &self.founder, Standing::Founder),
        ]
    }

    /// The request of a route, with what it needs so that nothing but its caller can be refused.
    pub fn request(&self, method: &str, route: &str, name: &str, number: usize) -> RequestBuilder {
        let stranger = lightcone_types::Identity::from_claims("localhost", "stranger").to_hex();
        let path = path_of(route, name, &stranger);
        let path = match method {
            // A backup of nothing.
            "PUT" => path.replace("/backup", &format!("/backup?end=0-{:032}", 0)),
            _ => path,
        };
        let method = if method == "*" { "GET" } else { method };
        let request = self.server.request(method, &path);
        let is = |suffix: &str| route.ends_with(suffix);
        match (method, route) {
            ("PUT", "/v1/database/{database}") => request.body(OTHER),
            ("POST", _) if is("/pre_publish") => request.body(OTHER),
            ("PUT", _) if is("/reset") => request.body(OTHER),
            ("PUT" | "PATCH", _) if is("/environment") => request.body("{}"),
            ("POST", _) if is("/names") => request.body(format!("more-{number}")),
            ("PUT", _) if is("/names") => request
                .header("content-type", "application/json")
                .body(format!("[\"other-{number}\"]")),
            ("POST", _) if is("/call/{function}") => request
                .header("content-type", "application/json")
                .body("[1, \"x\"]"),
            ("POST", _) if is("/sql") => request.body("SELECT * FROM person"),
            ("PUT", _) if is("/collaborators/{identity}") => request.body("{\"role\":\"reader\"}"),
            _ => request,
        }
    }
}

/// The path of a request for a route of the table, about a database and an identity.
pub fn path_of(route: &str, name: &str, identity: &str) -> String {
    route
        .replace("{database}", name)
        .replace("{function}", "add")
        .replace("{reducer}", "add")
        .replace("{identity}", identity)
        .replace("{hash}", &Hash::keccak256(MODULE.as_bytes()).to_hex())
        .replace("{file}", "index.html")
        .replace("{*path}", "ab/c")
        .replace("/advance", "/advance?us=1")
        .replace("/schema", "/schema?version=9")
        .replace("/changes", "/changes?follow=false")
}

pub fn by(request: RequestBuilder, person: &Person) -> RequestBuilder {
    match &person.user {
        Some(user) => request.bearer_auth(&user.token),
        None => request,
    }
}
