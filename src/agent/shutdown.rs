//! SHUTDOWN, obeyed by the runtime and never put to the model.

use super::{AutonomousAgent, Office};
use crate::{
    model::{AgentName, Envelope, Kind, Message, MessageId, Obedience, Protocol, Status, Tries},
    store::StoreError,
};

/// Tells whoever sent a SHUTDOWN that it has been seen. It is only a courtesy: that the teammate
/// has stopped is told by the response.
pub fn announce(office: &Office, name: &AgentName, order: &Message) {
    // Whoever reads of the end may start it again before its thread has ended.
    office.statuses.update(name, |status| status.is_ending = true);
    let said = &order.envelope;
    let id = MessageId::derived(&["stopping", name.as_str(), said.from.as_str(), said.id.as_str()]);
    let event = Envelope {
        protocol: Some(Protocol::Shutdown),
        in_reply_to: Some(said.id.clone()),
        ..Envelope::new(id, name.clone(), said.from.clone(), Kind::Event, "stopping")
    };
    drop(office.bus.reply(&event));
}

impl AutonomousAgent {
    /// Obeys SHUTDOWNs: however many there are, it is one stop. Each gets its response; then one
    /// record holds the stop and the cursor.
    pub(super) fn obey(&mut self, orders: &[Message]) -> Result<(), StoreError> {
        let Some(first) = orders.first() else { return Ok(()) };
        // Whoever reads that it has stopped may rely on it: nothing that it began goes on.
        self.background.close();
        self.tell_of_cut_off(false)?;
        let tries = self.inbox.take(first)?;
        let left = self.left_behind(orders);
        self.office.statuses.update(&self.name, |status| status.is_ending = true);
        for order in orders {
            let reply = self.response_to_order(order, Status::Stopped, &left);
            self.respond_once(&reply, tries)?;
        }
        self.inbox.stop(orders)
    }

    /// Answers a SHUTDOWN that is not obeyed.
    pub(super) fn decline(&mut self, order: &Message, why: Obedience) -> Result<(), StoreError> {
        let text = match why {
            Obedience::Stale => format!(
                "stale: it was written before {} was last started; send it again to stop it now",
                self.name
            ),
            Obedience::NotAllowed | Obedience::Obey => format!(
                "not allowed: only the user, outsiders and the lead ({}) may stop a teammate",
                self.office.team.lead
            ),
        };
        let tries = self.inbox.take(order)?;
        let reply = self.response_to_order(order, Status::Denied, &text);
        self.respond_once(&reply, tries)?;
        self.inbox.settle(std::slice::from_ref(order))
    }

    fn respond_once(&self, reply: &Envelope, tries: Tries) -> Result<(), StoreError> {
        if tries == Tries::default() {
            self.office.bus.reply(reply)?;
            return Ok(());
        }
        self.send_once(reply)
    }

    /// Sends what an earlier try may have sent. There is no record of where to look from, so it looks
    /// through the whole mailbox.
    pub(super) fn send_once(&self, letter: &Envelope) -> Result<(), StoreError> {
        let bus = &self.office.bus;
        let start = bus.start_of(&letter.to)?;
        if !bus.has(&letter.to, &self.name, &letter.id, start)? {
            bus.reply(letter)?;
        }
        Ok(())
    }

    fn response_to_order(&self, order: &Message, status: Status, text: &str) -> Envelope {
        let said = &order.envelope;
        let id = MessageId::derived(&[
            "reply",
            self.name.as_str(),
            said.from.as_str(),
            said.id.as_str(),
        ]);
        Envelope {
            status: Some(status),
            protocol: Some(Protocol::Shutdown),
            in_reply_to: Some(said.id.clone()),
            ..Envelope::new(id, self.name.clone(), said.from.clone(), Kind::Response, text)
        }
    }

    fn left_behind(&self, orders: &[Message]) -> String {
        let unread = self.inbox.unread_count().saturating_sub(orders.len());
        let mail = match unread {
            0 => "no unread mail is left".to_owned(),
            1 => "1 unread message is left for its next start".to_owned(),
            many => format!("{many} unread messages are left for its next start"),
        };
        format!("stopped; {mail}")
    }
}
