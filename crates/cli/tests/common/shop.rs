//! A server that plays its part, with the database `shop`.

use super::{json, text, token, Mock, Request, Response, DATABASE};

pub const SCHEMA: &str = r#"{"sections":[{"Typespace":{"types":[]}},
 {"Reducers":[{"source_name":"add","params":{"elements":[{"name":{"some":"n"},"algebraic_type":{"U32":[]}},{"name":{"some":"who"},"algebraic_type":{"String":[]}}]},
   "visibility":{"ClientCallable":[]},"ok_return_type":{"Product":{"elements":[]}},"err_return_type":{"String":[]}}]},
 {"ExplicitNames":{"entries":[]}}]}"#;

/// The routes that most commands begin with.
pub fn basics(request: &Request) -> Option<Response> {
    if request.line() == "GET /v1/database/shop/identity" {
        return Some(text(200, DATABASE));
    }
    if request.line() == format!("GET /v1/database/{DATABASE}/schema?version=10") {
        return Some(json(SCHEMA));
    }
    if request.line() == "POST /v1/identity" {
        let token = token("direct");
        return Some(json(format!(r#"{{"identity":"c2","token":"{token}"}}"#)));
    }
    None
}

pub fn mock(answer: impl Fn(&Request) -> Option<Response> + Send + Sync + 'static) -> Mock {
    Mock::start(move |request| {
        answer(request)
            .or_else(|| basics(request))
            .unwrap_or_else(|| text(404, ""))
    })
}
