//! What a teammate, or what it runs in the background, waits for: responses, and decisions about its
//! questions.

use super::Inbox;
use crate::{
    journal::Position,
    model::{AgentName, Kind, Message, MessageId},
};

/// A wait for the response to a request; it ends when dropped.
pub struct Awaiting {
    inbox: Inbox,
    request: MessageId,
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        let mut state = self.inbox.0.lock();
        let place = state.awaited.iter().position(|it| *it == self.request);
        if let Some(place) = place {
            state.awaited.swap_remove(place);
        }
    }
}

impl Inbox {
    /// Keeps the response to `request` for whoever holds the value: what runs in the background may
    /// wait for one while its teammate reads its mail.
    #[must_use]
    pub fn await_response(&self, request: &MessageId) -> Awaiting {
        self.0.lock().awaited.push(request.clone());
        Awaiting { inbox: self.clone(), request: request.clone() }
    }

    /// The response to `request` from whoever was asked, wherever it lies in the unread mail. A
    /// teammate's counts only with its seal.
    pub fn response(&self, request: &MessageId, from: &AgentName) -> Option<Message> {
        let state = self.0.lock();
        let answers = |it: &&Message| {
            it.envelope.kind == Kind::Response
                && it.envelope.in_reply_to.as_ref() == Some(request)
                && it.envelope.from == *from
                && (it.sealed || !state.team.teammates.contains_key(from))
        };
        state.unread().find(answers).cloned()
    }

    /// Whether this teammate has asked the question `id` and has not acted on a yes.
    pub fn has_asked(&self, id: &MessageId) -> bool {
        self.0.lock().asked.contains_key(id)
    }

    /// Where the line stands that has closed the question `id` without an answer.
    pub fn closed_at(&self, id: &MessageId) -> Option<Position> {
        self.0.lock().closed.get(id).copied()
    }

    /// The questions that this teammate has asked while it worked on tasks, and that are not settled.
    pub fn asked_for_tasks(&self) -> Vec<Message> {
        let state = self.0.lock();
        let is_open = |it: &&Message| !state.closed.contains_key(&it.envelope.id);
        let of_tasks = state.asked.values().filter(|it| it.envelope.task_id.is_some());
        let of_tasks = of_tasks.filter(is_open);
        of_tasks.cloned().collect()
    }

    /// The unread messages that say yes or no to the question `id`.
    pub fn decisions(&self, id: &MessageId) -> Vec<Message> {
        let state = self.0.lock();
        let decides = |it: &&Message| {
            it.envelope.decision.is_some() && it.envelope.in_reply_to.as_ref() == Some(id)
        };
        state.unread().filter(decides).cloned().collect()
    }
}
