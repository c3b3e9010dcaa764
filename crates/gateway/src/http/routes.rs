//! The routes: which handler answers, and all that is asked of the request before. A new route is one row here.

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get, on, MethodFilter};
use axum::Router;
use lightcone_node::permissions::Action;

use super::access::{self, Class};
use super::route::{BodyMax, Route, Token};
use super::{
    backup, body, call, changes, collaborators, cors, credentials, dashboard, database,
    environment, handlers, identity, logs, mcp, messages, migration, names, owner, pre_publish,
    programs, publish, reset, sql, status, traced,
};
use crate::gateway::Gateway;
use crate::ws;

macro_rules! routes {
    ($( $class:ident $method:ident $path:literal $token:ident $action:ident $body:ident => $handler:path; )*) => {
        &[$( Route {
            method: routes!(@name $method),
            path: $path,
            action: routes!(@action $action),
            class: Class::$class,
            token: Token::$token,
            body: BodyMax::$body,
            handler: || routes!(@handle $method $handler),
        } ),*]
    };
    (@name ANY) => { "*" };
    (@name $method:ident) => { stringify!($method) };
    (@action None) => { None };
    (@action $action:ident) => { Some(Action::$action) };
    (@handle ANY $handler:path) => { any($handler) };
    (@handle $method:ident $handler:path) => { on(MethodFilter::$method, $handler) };
}

/// Publishing with `clear` needs what `reset` needs, taking all names away [`Action::LeaveNameless`], and every caller may give
/// his own role back. SQL, calls and subscriptions are for every caller, and show and change what his rights let him; each tool of
/// MCP needs what its plain route needs.
pub const ROUTES: &[Route] = routes! {
    Management POST   "/v1/database"                                     Minted   None                Program => publish::create;
    Management PUT    "/v1/database/{database}"                          Minted   Update              Program => publish::publish;
    Client     GET    "/v1/database/{database}"                          Minted   Use                 Nothing => database::info;
    Management DELETE "/v1/database/{database}"                          Minted   Delete              Nothing => owner::delete;
    Management POST   "/v1/database/{database}/pre_publish"              Minted   Update              Program => pre_publish::pre_publish;
    Management GET    "/v1/database/{database}/programs"                 Minted   Update              Nothing => programs::list;
    Management GET    "/v1/database/{database}/programs/{hash}"          Minted   Update              Nothing => programs::one;
    Management GET    "/v1/database/{database}/migration"                Minted   Update              Nothing => migration::status;
    Management DELETE "/v1/database/{database}/migration"                Minted   Update              Nothing => migration::cancel;
    Management GET    "/v1/database/{database}/environment"              Minted   Update              Nothing => environment::show;
    Management PUT    "/v1/database/{database}/environment"              Minted   Update              Environment => environment::replace;
    Management PATCH  "/v1/database/{database}/environment"              Minted   Update              Environment => environment::patch;
    Management PUT    "/v1/database/{database}/reset"                    Minted   Reset               Program => reset::reset;
    Management GET    "/v1/database/{database}/tables"                   Minted   Update              Nothing => database::tables;
    Management POST   "/v1/database/{database}/lock"                     Minted   Lock                Nothing => owner::lock;
    Management POST   "/v1/database/{database}/unlock"                   Minted   Lock                Nothing => owner::unlock;
    Client     GET    "/v1/database/{database}/names"                    Minted   Use                 Nothing => names::list;
    Management POST   "/v1/database/{database}/names"                    Minted   Rename              List    => names::add;
    Management PUT    "/v1/database/{database}/names"                    Minted   Rename              List    => names::replace;
    Client     GET    "/v1/database/{database}/identity"                 Minted   Use                 Nothing => database::identity;
    Client     POST   "/v1/database/{database}/call/{function}"          Minted   Use                 Text    => call::call;
    Management POST   "/v1/database/{database}/call-from-database/{reducer}" Unread None               Message => messages::receive;
    Client     GET    "/v1/database/{database}/schema"                   Minted   Use                 Nothing => database::schema;
    Management GET    "/v1/database/{database}/logs"                     Minted   ViewLogs            Nothing => logs::logs;
    Management GET    "/v1/database/{database}/changes"                  Minted   FollowChanges       Nothing => changes::changes;
    Management POST   "/v1/database/{database}/backup"                   Minted   BackUp              Hashes  => backup::backup;
    Management PUT    "/v1/database/{database}/backup"                   Minted   BackUp              Nothing => backup::complete;
    Management POST   "/v1/database/{database}/restore"                  Minted   None                Backup  => backup::restore;
    Management GET    "/v1/database/{database}/metrics"                  Minted   ViewMetrics         Nothing => database::metrics;
    Management GET    "/v1/database/{database}/queries"                  Minted   ViewMetrics         Nothing => database::queries;
    Client     POST   "/v1/database/{database}/sql"                      Minted   Use                 Text    => sql::sql;
    Client     GET    "/v1/database/{database}/subscribe"                Minted   Use                 Nothing => ws::subscribe;
    Client     GET    "/v1/database/{database}/unstable/timestamp"       Minted   Use                 Nothing => database::timestamp;
    Management POST   "/v1/database/{database}/advance"                  Minted   Update              Nothing => database::advance;
    Management GET    "/v1/database/{database}/collaborators"            Minted   ListCollaborators   Nothing => collaborators::list;
    Management PUT    "/v1/database/{database}/collaborators/{identity}" Minted   ChangeCollaborators List    => collaborators::put;
    Management DELETE "/v1/database/{database}/collaborators/{identity}" Minted   ChangeCollaborators Nothing => collaborators::delete;
    Management POST   "/v1/database/{database}/mcp"                      Minted   None                Text    => mcp::of_database;
    Management POST   "/v1/mcp"                                          Minted   None                Text    => mcp::of_server;
    Client     POST   "/v1/identity/websocket-token"                     Required None                Nothing => identity::websocket_token;
    Client     GET    "/v1/identity/{identity}/verify"                   Required None                Nothing => identity::verify;
    Client     GET    "/v1/ping"                                         Checked  None                Nothing => status::ping;
    Client     POST   "/v1/identity"                                     Unread   None                Nothing => identity::create;
    Client     GET    "/v1/identity/public-key"                          Unread   None                Nothing => identity::public_key;
    Management GET    "/v1/identity/key-proof"                           Unread   None                Nothing => identity::key_proof;
    Management GET    "/v1/identity/{identity}/databases"                Unread   None                Nothing => identity::databases;
    Client     ANY    "/v1/database/{database}/route"                    Unread   Use                 Message => handlers::handle;
    Client     ANY    "/v1/database/{database}/route/"                   Unread   Use                 Message => handlers::handle;
    Client     ANY    "/v1/database/{database}/route/{*path}"            Unread   Use                 Message => handlers::handle;
    Client     GET    "/v1/energy/{identity}"                            Unread   None                Nothing => status::energy;
    Management PUT    "/v1/energy/{identity}"                            Unread   None                Nothing => status::set_energy;
    Management POST   "/v1/energy/{identity}"                            Unread   None                Nothing => status::add_energy;
    Client     GET    "/v1/health"                                       Unread   None                Nothing => status::health;
    Management GET    "/v1/metrics"                                      Unread   None                Nothing => status::metrics;
    Management GET    "/v1/prometheus/sd_config"                         Unread   None                Nothing => status::prometheus_discovery;
    Management GET    "/dashboard"                                       Internal None                Nothing => dashboard::entry;
    Management GET    "/dashboard/"                                      Internal None                Nothing => dashboard::page;
    Management GET    "/dashboard/{file}"                                Internal None                Nothing => dashboard::file;
    Management GET    "/internal/heap"                                   Internal None                Nothing => status::diagnostics;
    Management GET    "/internal/heap/settings"                          Internal None                Nothing => status::diagnostics;
    Management POST   "/internal/heap/settings"                          Internal None                Nothing => status::diagnostics;
    Management GET    "/internal/task-dump"                              Internal None                Nothing => status::diagnostics;
};

/// All routes. The layers of a token run for 405 answers too, and for nothing else.
pub fn router(state: Arc<Gateway>) -> Router {
    let of = |token: Token| {
        let rows = ROUTES.iter().filter(|row| row.token == token);
        rows.fold(Router::new(), |router, row| {
            router.route(row.path, row.method_router(&state))
        })
    };
    let checked = |token: Token| {
        let layer = from_fn_with_state((state.clone(), token, ROUTES), credentials::layer);
        of(token).route_layer(layer)
    };
    of(Token::Unread)
        .merge(checked(Token::Minted))
        .merge(checked(Token::Required))
        .merge(checked(Token::Checked))
        .route_layer(from_fn(cors::layer))
        .merge(of(Token::Internal))
        .layer(from_fn_with_state(state.clone(), traced::layer))
        .layer(from_fn_with_state(state.clone(), access::every_request))
        .layer(from_fn_with_state(state.clone(), body::drain_rest))
        .with_state(state)
}

/// What `metrics.listen` serves.
pub fn metrics_router(state: Arc<Gateway>) -> Router {
    Router::new()
        .route("/metrics", get(status::open_metrics))
        .route("/v1/metrics", get(status::open_metrics))
        .layer(from_fn_with_state(state.clone(), access::every_request))
        .with_state(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not on this list is not open to the pages of every origin; `tests/access.rs` asks each route.
    #[test]
    fn every_route_has_its_class() {
        let of_clients = ROUTES.iter().filter(|row| row.class == Class::Client);
        let of_clients: Vec<_> = of_clients
            .map(|row| format!("{} {}", row.method, row.path))
            .collect();
        assert_eq!(
            of_clients,
            [
                "GET /v1/database/{database}",
                "GET /v1/database/{database}/names",
                "GET /v1/database/{database}/identity",
                "POST /v1/database/{database}/call/{function}",
                "GET /v1/database/{database}/schema",
                "POST /v1/database/{database}/sql",
                "GET /v1/database/{database}/subscribe",
                "GET /v1/database/{database}/unstable/timestamp",
                "POST /v1/identity/websocket-token",
                "GET /v1/identity/{identity}/verify",
                "GET /v1/ping",
                "POST /v1/identity",
                "GET /v1/identity/public-key",
                "* /v1/database/{database}/route",
                "* /v1/database/{database}/route/",
                "* /v1/database/{database}/route/{*path}",
                "GET /v1/energy/{identity}",
                "GET /v1/health",
            ]
        );
        assert_eq!(ROUTES.len(), of_clients.len() + 44, "routes of management");
    }
}
