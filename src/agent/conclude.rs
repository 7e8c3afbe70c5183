//! The end of a piece of work, write by write: the end itself, one reply for each request, the
//! trace, the cursor. Killed between any two, a restart does the rest and nothing twice.

use std::collections::BTreeMap;

use super::{AutonomousAgent, Ended};
use crate::{
    model::{Durability, Envelope, Final, Kind, Mail, Message, MessageId, Protocol, Tally, Turn},
    store::StoreError,
};

impl AutonomousAgent {
    /// Ends the work on `message`: keeps the end, replies, settles.
    pub(super) fn conclude(&mut self, message: &Message, ended: Ended) -> Result<(), StoreError> {
        let Ended::Concluded { status, text, decision } = ended else { return Ok(()) };
        let mut places = BTreeMap::new();
        for mail in requests(self.kept.conversation().in_hand()) {
            places.insert(mail.from.clone(), self.office.bus.end_of(&mail.from)?);
        }
        self.kept.push(Turn::Final(Final { status, text, decision, places }))?;
        if self.office.team.durability == Durability::Power {
            self.kept.sync()?;
        }
        self.tell(message)
    }

    /// Replies to the requests of the work that has ended, unless a reply is out already, and settles
    /// it with all that joined.
    pub(super) fn tell(&mut self, message: &Message) -> Result<(), StoreError> {
        let said = &message.envelope;
        let Some((turns, end)) = self.kept.conversation().concluded(&said.from, &said.id) else {
            crate::base::broken("work that is told of has ended");
        };
        let (turns, end) = (turns.to_vec(), end.clone());
        for mail in requests(&turns) {
            let reply = self.reply(mail, &end);
            if !self.is_out(&reply, &end)? {
                self.office.bus.reply(&reply)?;
            }
        }
        self.trace.conclusion(&said.id, end.status, &end.text);
        let joined = self.inbox.unread_among(&Tally::of(&turns).mail);
        let mut settled = vec![message.clone()];
        settled.extend(joined.into_iter().filter(|it| it.at != message.at));
        if self.office.team.durability == Durability::Power {
            self.office.bus.sync(&said.from)?;
        }
        self.inbox.settle(&settled)?;
        self.office.statuses.update(&self.name, |status| {
            status.answered += 1;
            status.last = Some(end.status);
        });
        Ok(())
    }

    fn is_out(&self, reply: &Envelope, end: &Final) -> Result<bool, StoreError> {
        let Some(place) = end.places.get(&reply.to) else { return Ok(false) };
        self.office.bus.has(&reply.to, &self.name, &reply.id, *place)
    }

    fn reply(&self, to: &Mail, end: &Final) -> Envelope {
        let id =
            MessageId::derived(&["reply", self.name.as_str(), to.from.as_str(), to.id.as_str()]);
        let (from, whom) = (self.name.clone(), to.from.clone());
        Envelope {
            status: Some(end.status),
            protocol: to.protocol,
            decision: end.decision.filter(|_| to.protocol == Some(Protocol::PlanApproval)),
            in_reply_to: Some(to.id.clone()),
            trace_id: Some(self.trace.id().to_string()),
            hops: to.hops.saturating_add(1),
            ..Envelope::new(id, from, whom, Kind::Response, end.text.clone())
        }
    }
}

fn requests(turns: &[Turn]) -> impl Iterator<Item = &Mail> {
    turns.iter().filter_map(|turn| match turn {
        Turn::Mail(mail) if mail.kind == Kind::Request => Some(mail),
        _ => None,
    })
}
