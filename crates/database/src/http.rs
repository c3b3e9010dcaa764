//! Requests to the HTTP handlers of a module (03 §11.6, 06 §5.16).

use bytes::Bytes;
use lightcone_host::{HttpMethod, HttpRequest, HttpResponse};
use lightcone_types::{Encode as _, Timestamp};
use tokio::sync::oneshot;

use crate::budget::Holder;
use crate::error::CallError;
use crate::handle::DatabaseHandle;
use crate::writer::Item;

/// A request as the writer gets it.
pub(crate) struct HandlerRequest {
    pub method: HttpMethod,
    /// What is left of the path behind `/route`, decoded.
    pub path: String,
    /// The BSATN of the whole head.
    pub head: Vec<u8>,
    pub body: Bytes,
    pub timestamp: Timestamp,
}

/// What a handler answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandlerReply {
    /// Decoded; whether its status and headers are such was not checked.
    pub head: HttpResponse,
    pub body: Bytes,
}

impl DatabaseHandle {
    /// Whether the module has a handler for this method and path.
    pub fn has_http_route(&self, method: &HttpMethod, path: &str) -> bool {
        let module = self.shared.module();
        module.def().http_handler(method, path).is_some()
    }

    /// Lets the module answer a request. `path` is what is left of the path behind `/route`, decoded. Returns when everything
    /// that the handler could have seen or done is durable.
    ///
    /// The answer counts as the client's until it is dropped, and tells whom it is held for.
    ///
    /// # Errors
    /// There is no such handler, or it failed; the text is for the client.
    pub async fn http_request(
        &self,
        path: String,
        request: HttpRequest,
        body: Bytes,
    ) -> Result<(HandlerReply, Option<Holder>), CallError> {
        let head = request.to_vec();
        let permit = self.shared.inbox_permit(head.len() + body.len()).await;
        let permit = permit.map_err(|()| CallError::ModuleGone)?;
        let (reply, result) = oneshot::channel();
        let request = HandlerRequest {
            method: request.method,
            path,
            head,
            body,
            timestamp: Timestamp::now(),
        };
        let item = Item::HttpRequest {
            permit,
            request: Box::new(request),
            reply,
        };
        self.shared.send(item).map_err(|()| self.shared.gone())?;
        let mut reply = result.await.map_err(|_| self.shared.gone())??;
        let body = self.hold(reply.body.into()).map_err(CallError::Busy)?;
        let holder = body.holder();
        reply.body = Bytes::from_owner(body);
        Ok((reply, holder))
    }
}
