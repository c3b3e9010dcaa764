//! The table of routes. A route cannot be added without its [`Class`].

use std::sync::Arc;

use axum::handler::Handler;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, on, MethodFilter, MethodRouter};
use axum::Router;

use super::access::{self, Class};
use crate::state::ServerState;

type State = Arc<ServerState>;

/// Routes in the making.
pub(super) struct Routes {
    state: State,
    router: Router<State>,
    /// What was added: method (`*` for any), path, class.
    table: Vec<(&'static str, &'static str, Class)>,
}

impl Routes {
    pub fn new(state: &State) -> Routes {
        Routes {
            state: state.clone(),
            router: Router::new(),
            table: Vec::new(),
        }
    }

    pub fn get<H: Handler<T, State>, T: 'static>(
        self,
        class: Class,
        path: &'static str,
        handler: H,
    ) -> Routes {
        self.add("GET", path, class, on(MethodFilter::GET, handler))
    }

    pub fn post<H: Handler<T, State>, T: 'static>(
        self,
        class: Class,
        path: &'static str,
        handler: H,
    ) -> Routes {
        self.add("POST", path, class, on(MethodFilter::POST, handler))
    }

    pub fn put<H: Handler<T, State>, T: 'static>(
        self,
        class: Class,
        path: &'static str,
        handler: H,
    ) -> Routes {
        self.add("PUT", path, class, on(MethodFilter::PUT, handler))
    }

    pub fn delete<H: Handler<T, State>, T: 'static>(
        self,
        class: Class,
        path: &'static str,
        handler: H,
    ) -> Routes {
        self.add("DELETE", path, class, on(MethodFilter::DELETE, handler))
    }

    pub fn any<H: Handler<T, State>, T: 'static>(
        self,
        class: Class,
        path: &'static str,
        handler: H,
    ) -> Routes {
        self.add("*", path, class, any(handler))
    }

    fn add(
        mut self,
        method: &'static str,
        path: &'static str,
        class: Class,
        route: MethodRouter<State>,
    ) -> Routes {
        self.table.push((method, path, class));
        let route = match class {
            Class::Client => route,
            Class::Management => {
                route.route_layer(from_fn_with_state(self.state.clone(), access::management))
            }
        };
        self.router = self.router.route(path, route);
        self
    }

    /// Puts something around the routes that are there already, their 405 answers included.
    pub fn layered(mut self, wrap: impl FnOnce(Router<State>) -> Router<State>) -> Routes {
        self.router = wrap(self.router);
        self
    }

    pub fn merge(mut self, other: Routes) -> Routes {
        self.router = self.router.merge(other.router);
        self.table.extend(other.table);
        self
    }

    pub fn into_router(self) -> Router<State> {
        self.router
    }

    #[cfg(test)]
    pub fn table(&self) -> &[(&'static str, &'static str, Class)] {
        &self.table
    }
}
