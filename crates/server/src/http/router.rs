//! Which handler answers which route.

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::Router;

use super::access::{self, Class};
use super::routes::Routes;
use super::{
    body, call, collaborators, cors, credentials, database, identity, logs, mcp, migration, misc,
    names, owner, pre_publish, publish, reset, route, sql, traced,
};
use crate::state::ServerState;

/// All routes.
pub(crate) fn router(state: Arc<ServerState>) -> Router {
    routes(&state)
        .into_router()
        .layer(from_fn_with_state(state.clone(), traced::layer))
        .layer(from_fn_with_state(state.clone(), access::every_request))
        .layer(from_fn_with_state(state.clone(), body::drain_rest))
        .with_state(state)
}

/// What `metrics.listen` serves.
pub(crate) fn metrics_router(state: Arc<ServerState>) -> Router {
    Router::new()
        .route("/metrics", axum::routing::get(misc::open_metrics))
        .route("/v1/metrics", axum::routing::get(misc::open_metrics))
        .layer(from_fn_with_state(state.clone(), access::every_request))
        .with_state(state)
}

/// The table. The layers of a route run for its 405 answers too, and for nothing else.
fn routes(state: &Arc<ServerState>) -> Routes {
    use Class::{Client, Management};
    let anonymous = Routes::new(state)
        .post(Management, "/v1/database", publish::create)
        .put(Management, "/v1/database/{database}", publish::publish)
        .get(Client, "/v1/database/{database}", database::info)
        .delete(Management, "/v1/database/{database}", owner::delete)
        .post(
            Management,
            "/v1/database/{database}/pre_publish",
            pre_publish::pre_publish,
        )
        .get(
            Management,
            "/v1/database/{database}/migration",
            migration::status,
        )
        .delete(
            Management,
            "/v1/database/{database}/migration",
            migration::cancel,
        )
        .put(Management, "/v1/database/{database}/reset", reset::reset)
        .get(
            Management,
            "/v1/database/{database}/tables",
            database::tables,
        )
        .post(Management, "/v1/database/{database}/lock", owner::lock)
        .post(Management, "/v1/database/{database}/unlock", owner::unlock)
        .get(Client, "/v1/database/{database}/names", names::list)
        .post(Management, "/v1/database/{database}/names", names::add)
        .put(Management, "/v1/database/{database}/names", names::replace)
        .get(
            Client,
            "/v1/database/{database}/identity",
            database::identity,
        )
        .post(
            Client,
            "/v1/database/{database}/call/{function}",
            call::call,
        )
        .get(Client, "/v1/database/{database}/schema", database::schema)
        .get(Management, "/v1/database/{database}/logs", logs::logs)
        .get(
            Management,
            "/v1/database/{database}/metrics",
            database::metrics,
        )
        .post(Client, "/v1/database/{database}/sql", sql::sql)
        .get(
            Client,
            "/v1/database/{database}/subscribe",
            crate::ws::subscribe,
        )
        .get(
            Client,
            "/v1/database/{database}/unstable/timestamp",
            database::timestamp,
        )
        .get(
            Management,
            "/v1/database/{database}/collaborators",
            collaborators::list,
        )
        .put(
            Management,
            "/v1/database/{database}/collaborators/{identity}",
            collaborators::put,
        )
        .delete(
            Management,
            "/v1/database/{database}/collaborators/{identity}",
            collaborators::delete,
        )
        .post(Management, "/v1/database/{database}/mcp", mcp::of_database)
        .post(Management, "/v1/mcp", mcp::of_server)
        .layered(|router| {
            router.route_layer(from_fn_with_state(state.clone(), credentials::anonymous))
        });
    let required = Routes::new(state)
        .post(
            Client,
            "/v1/identity/websocket-token",
            identity::websocket_token,
        )
        .get(Client, "/v1/identity/{identity}/verify", identity::verify)
        .layered(|router| {
            router.route_layer(from_fn_with_state(state.clone(), credentials::required))
        });
    let optional = Routes::new(state)
        .get(Client, "/v1/ping", misc::ping)
        .layered(|router| {
            router.route_layer(from_fn_with_state(state.clone(), credentials::optional))
        });
    let open = Routes::new(state)
        .post(Client, "/v1/identity", identity::create)
        .get(Client, "/v1/identity/public-key", identity::public_key)
        .get(Management, "/v1/identity/key-proof", identity::key_proof)
        .get(
            Management,
            "/v1/identity/{identity}/databases",
            identity::databases,
        )
        .any(Client, "/v1/database/{database}/route", route::handle)
        .any(Client, "/v1/database/{database}/route/", route::handle)
        .any(
            Client,
            "/v1/database/{database}/route/{*path}",
            route::handle,
        )
        .get(Client, "/v1/energy/{identity}", misc::energy)
        .put(Management, "/v1/energy/{identity}", misc::set_energy)
        .post(Management, "/v1/energy/{identity}", misc::add_energy)
        .get(Client, "/v1/health", misc::health)
        .get(Management, "/v1/metrics", misc::metrics)
        .get(
            Management,
            "/v1/prometheus/sd_config",
            misc::prometheus_discovery,
        );
    let internal = Routes::new(state)
        .get(Management, "/internal/heap", misc::diagnostics)
        .get(Management, "/internal/heap/settings", misc::diagnostics)
        .post(Management, "/internal/heap/settings", misc::diagnostics)
        .get(Management, "/internal/task-dump", misc::diagnostics);
    anonymous
        .merge(required)
        .merge(optional)
        .merge(open)
        .layered(|router| router.route_layer(from_fn(cors::layer)))
        .merge(internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_route_says_what_it_needs() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = crate::startup::state_for_tests(directory.path());
        let routes = routes(&state);
        let table = routes.table().iter();
        let table: Vec<_> = table.map(|(method, path, _)| (*method, *path)).collect();
        let known = crate::permissions::ROUTES.iter();
        let known: Vec<_> = known.map(|(method, path, _)| (*method, *path)).collect();
        for route in &table {
            assert!(known.contains(route), "{route:?} is not in permissions.rs");
        }
        assert_eq!(known.len(), table.len());
    }

    /// What is not on this list is not open to the pages of every origin; `tests/access.rs` asks each route.
    #[tokio::test]
    async fn every_route_has_its_class() {
        let directory = tempfile::tempdir().expect("a directory");
        let state = crate::startup::state_for_tests(directory.path());
        let routes = routes(&state);
        let of_clients: Vec<_> = routes
            .table()
            .iter()
            .filter(|(_, _, class)| *class == Class::Client)
            .map(|(method, path, _)| format!("{method} {path}"))
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
        assert_eq!(
            routes.table().len(),
            of_clients.len() + 29,
            "routes of management"
        );
    }
}
