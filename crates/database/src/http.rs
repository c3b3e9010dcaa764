//! Requests to the HTTP handlers of a module (03 §11.6, 06 §5.16).

use bytes::Bytes;
use lightcone_host::{HttpMethod, HttpRequest};
use lightcone_types::Encode as _;

use crate::budget::Holder;
use crate::calls::{CallError, HandlerReply, HandlerRequest, HandlerSender};
use crate::handle::DatabaseHandle;
use crate::inbox::Input;

impl DatabaseHandle {
    /// Whether the module has a handler for this method and path.
    pub fn has_http_route(&self, method: &HttpMethod, path: &str) -> bool {
        let module = self.shared.module();
        module.def().http_handler(method, path).is_some()
    }

    /// Lets the module answer a request. `path` is what is left of the path behind `/route`, decoded. Returns when everything
    /// that the handler could have seen or done is durable.
    ///
    /// `charge` is what the body counts against; it is dropped when the request is in the inbox, which has bounds of its own.
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
        sender: HandlerSender,
        charge: impl Send,
    ) -> Result<(HandlerReply, Option<Holder>), CallError> {
        let head = request.to_vec();
        let inbox = &self.shared.inbox;
        let permit = inbox.capacity.permit(head.len() + body.len()).await?;
        let request = HandlerRequest {
            method: request.method,
            path,
            head,
            body,
            sender,
            timestamp: self.shared.environment().now(),
        };
        let command = |waiter| {
            drop(charge);
            Input::HttpRequest(Box::new(request), waiter)
        };
        let answer = self.shared.ask(Some(permit), true, command).await;
        let answer = answer.map_err(|_| self.shared.gone())??;
        let body = self.hold(answer.body.into_inner());
        let body = body.map_err(|refusal| CallError::Busy(refusal.0))?;
        let holder = body.holder();
        let reply = HandlerReply {
            head: answer.head,
            body: Bytes::from_owner(body),
        };
        Ok((reply, holder))
    }
}
