//! The routes of 06 §5.

pub(crate) mod body;
mod call;
mod confirmation;
mod cors;
mod credentials;
mod database;
mod identity;
mod logs;
mod misc;
mod names;
mod owner;
mod path;
mod publish;
mod query;
mod reply;
mod route;
mod sql;

use std::sync::Arc;

use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get, post, put};
use axum::Router;

pub(crate) use path::DatabasePath;
pub(crate) use query::{wrong as wrong_query, Query};
pub(crate) use reply::{error_chain, Failure, Reply};

use crate::state::ServerState;

/// All routes. The layers of a route run for its 405 answers too, and for nothing else.
pub(crate) fn router(state: Arc<ServerState>) -> Router {
    let anonymous = Router::new()
        .route("/v1/database", post(publish::create))
        .route(
            "/v1/database/{database}",
            put(publish::publish)
                .get(database::info)
                .delete(owner::delete),
        )
        .route(
            "/v1/database/{database}/pre_publish",
            post(publish::pre_publish),
        )
        .route("/v1/database/{database}/reset", put(publish::reset))
        .route("/v1/database/{database}/lock", post(owner::lock))
        .route("/v1/database/{database}/unlock", post(owner::unlock))
        .route(
            "/v1/database/{database}/names",
            get(names::list).post(names::add).put(names::replace),
        )
        .route("/v1/database/{database}/identity", get(database::identity))
        .route("/v1/database/{database}/call/{function}", post(call::call))
        .route("/v1/database/{database}/schema", get(database::schema))
        .route("/v1/database/{database}/logs", get(logs::logs))
        .route("/v1/database/{database}/sql", post(sql::sql))
        .route(
            "/v1/database/{database}/subscribe",
            get(crate::ws::subscribe),
        )
        .route(
            "/v1/database/{database}/unstable/timestamp",
            get(database::timestamp),
        )
        .route("/v1/database/{database}/mcp", post(misc::mcp))
        .route("/v1/mcp", post(misc::mcp))
        .route_layer(from_fn_with_state(state.clone(), credentials::anonymous));
    let required = Router::new()
        .route(
            "/v1/identity/websocket-token",
            post(identity::websocket_token),
        )
        .route("/v1/identity/{identity}/verify", get(identity::verify))
        .route_layer(from_fn_with_state(state.clone(), credentials::required));
    let optional = Router::new()
        .route("/v1/ping", get(misc::ping))
        .route_layer(from_fn_with_state(state.clone(), credentials::optional));
    let open = Router::new()
        .route("/v1/identity", post(identity::create))
        .route("/v1/identity/public-key", get(identity::public_key))
        .route(
            "/v1/identity/{identity}/databases",
            get(identity::databases),
        )
        .route("/v1/database/{database}/route", any(route::handle))
        .route("/v1/database/{database}/route/", any(route::handle))
        .route("/v1/database/{database}/route/{*path}", any(route::handle))
        .route(
            "/v1/energy/{identity}",
            get(misc::energy)
                .put(misc::set_energy)
                .post(misc::add_energy),
        )
        .route("/v1/health", get(misc::health))
        .route("/v1/metrics", get(misc::metrics))
        .route("/v1/prometheus/sd_config", get(misc::prometheus_discovery));
    let public = anonymous
        .merge(required)
        .merge(optional)
        .merge(open)
        .route_layer(from_fn(cors::layer));
    let internal = Router::new()
        .route("/internal/heap", get(misc::diagnostics))
        .route(
            "/internal/heap/settings",
            get(misc::diagnostics).post(misc::diagnostics),
        )
        .route("/internal/task-dump", get(misc::diagnostics));
    public
        .merge(internal)
        .layer(from_fn_with_state(state.clone(), body::drain_rest))
        .with_state(state)
}
