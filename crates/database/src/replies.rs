//! Requests that wait for an answer of the writer.

use tokio::sync::oneshot;

use crate::inbox_capacity::InboxPermit;

/// Who waits for an answer.
pub(crate) struct Waiter<R> {
    /// In the inbox; given back with the answer.
    permit: Option<InboxPermit>,
    /// The answer waits until all is durable that it may rest on.
    pub confirmed: bool,
    reply: oneshot::Sender<R>,
}

impl<R> Waiter<R> {
    pub fn new(permit: Option<InboxPermit>, confirmed: bool) -> (Waiter<R>, oneshot::Receiver<R>) {
        let (reply, answer) = oneshot::channel();
        let waiter = Waiter {
            permit,
            confirmed,
            reply,
        };
        (waiter, answer)
    }

    /// The caller has given up.
    pub fn is_given_up(&self) -> bool {
        self.reply.is_closed()
    }

    pub fn leave_inbox(&mut self) {
        self.permit = None;
    }

    pub fn answer(self, answer: R) {
        // The caller may be gone by now.
        let _ = self.reply.send(answer);
    }
}
