//! Follows traces and all the runs below them: a line for each event as it comes.

use std::{collections::BTreeMap, time::Duration};

use super::{
    failure::{Code, Failure},
    render::Printer,
    trace::{Root, life_of, short_id},
    trace_draw::event_line,
};
use crate::{
    base::{Interrupted, Scope, Timestamp},
    journal::Position,
    model::{AgentName, RunId},
    store::{Store, Trace, TraceEvent, TraceLine, TraceNode, TraceReader},
};

/// How often to look for what no event tells of.
const LOOK: Duration = Duration::from_secs(2);

/// Traces that are followed.
pub struct Following<'a> {
    store: &'a Store,
    open: Vec<Followed>,
    /// How far the traces were read that have ended.
    ended: BTreeMap<RunId, Position>,
    /// The latest life of each teammate that is waited for; empty where none is.
    lives: BTreeMap<AgentName, u64>,
}

struct Followed {
    id: RunId,
    who: String,
    reader: TraceReader,
    is_root: bool,
    life: Option<(AgentName, u64)>,
}

impl<'a> Following<'a> {
    /// Follows `roots` behind what `trees` have of them; with `goes_on` into the next lives.
    pub fn new(
        store: &'a Store,
        roots: &[Root],
        trees: Vec<TraceNode>,
        goes_on: bool,
    ) -> Result<Self, Failure> {
        let (open, ended, lives) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut following = Self { store, open, ended, lives };
        for tree in trees {
            following.add_tree(tree, true)?;
        }
        for (name, life) in roots.iter().filter(|_| goes_on).filter_map(|root| root.life.clone()) {
            following.await_life(name, life + 1)?;
        }
        Ok(following)
    }

    /// Prints what comes until all that was asked for has ended.
    pub fn go_on(&mut self, scope: &Scope, printer: &mut Printer) -> Result<Code, Failure> {
        while !printer.is_closed() && (!self.lives.is_empty() || self.has_root()) {
            let again = scope.clock.now().after(LOOK);
            let woken = scope.wait(Some(again), || self.has_more().then_some(()));
            if woken == Err(Interrupted::Late) {
                self.look_for_lives()?;
            }
            for (_, line) in self.more()? {
                printer.say(&line);
            }
        }
        Ok(Code::Ok)
    }

    fn has_root(&self) -> bool {
        self.open.iter().any(|it| it.is_root)
    }

    fn has_more(&self) -> bool {
        self.open.iter().any(|it| it.reader.has_more())
    }

    /// What has come, in the order of time. What is found meanwhile is read as well.
    fn more(&mut self) -> Result<Vec<(Timestamp, String)>, Failure> {
        let (mut found, mut at) = (Vec::new(), 0);
        while let Some(it) = self.open.get_mut(at) {
            let mut latest = Timestamp(i64::MIN);
            let (mut has_ended, mut lines) = (false, Vec::new());
            while let Some(more) = it.reader.more()? {
                lines.extend(more);
            }
            for line in &lines {
                if let TraceEvent::Started { head, .. } = &line.event {
                    let id = short_id(&it.id, head.life.is_some());
                    it.who = format!("{} {id}", head.agent);
                }
                latest = line.at.unwrap_or(latest).max(latest);
                found.extend(event_line(&it.who, line).map(|text| (latest, text)));
                has_ended = matches!(line.event, TraceEvent::Ended { .. });
            }
            let begun = it.life.clone().filter(|_| !lines.is_empty());
            if has_ended {
                let it = self.open.remove(at);
                self.ended.insert(it.id, it.reader.next());
            } else {
                at += 1;
            }
            if let Some((name, life)) = begun {
                self.await_life(name, life + 1)?;
            }
            self.add_started(&lines)?;
        }
        found.sort_by_key(|(time, _)| *time);
        Ok(found)
    }

    /// Follows the runs that were started or sent to.
    fn add_started(&mut self, lines: &[TraceLine]) -> Result<(), Failure> {
        for line in lines {
            if let TraceEvent::SubagentStarted { id, agent_type, .. } = &line.event
                && !self.open.iter().any(|it| it.id == *id)
            {
                let place = self.ended.remove(id).unwrap_or(Position::ZERO);
                let who = format!("{agent_type} {}", short_id(id, false));
                self.add(id.clone(), who, place, None)?;
            }
        }
        Ok(())
    }

    fn add_tree(&mut self, node: TraceNode, is_root: bool) -> Result<(), Failure> {
        self.ended.extend(node.left_out);
        if node.ended.is_some() {
            self.ended.insert(node.id, node.read_to);
        } else {
            let is_life = node.head.as_ref().is_some_and(|head| head.life.is_some());
            let agent = node.head.as_ref().map_or("", |head| head.agent.as_str());
            let who = format!("{agent} {}", short_id(&node.id, is_life));
            self.add(node.id, who, node.read_to, None)?;
            if let Some(it) = self.open.last_mut() {
                it.is_root = is_root;
            }
        }
        node.children.into_iter().try_for_each(|child| self.add_tree(child.node, false))
    }

    fn add(
        &mut self,
        id: RunId,
        who: String,
        place: Position,
        life: Option<(AgentName, u64)>,
    ) -> Result<(), Failure> {
        let reader = TraceReader::open(self.store, &id, place)?;
        self.open.push(Followed { id, who, reader, is_root: false, life });
        Ok(())
    }

    /// Waits for a life that has not begun.
    fn await_life(&mut self, name: AgentName, life: u64) -> Result<(), Failure> {
        if self.lives.get(&name).is_none_or(|known| *known < life) {
            self.lives.insert(name.clone(), life);
            let id = Trace::id_of(&name, life);
            self.add(id, name.to_string(), Position::ZERO, Some((name, life)))?;
        }
        Ok(())
    }

    /// Not every life comes as far as its trace: one that is waited for may be over.
    fn look_for_lives(&mut self) -> Result<(), Failure> {
        for name in self.lives.keys().cloned().collect::<Vec<_>>() {
            let life = life_of(self.store, &name)?;
            self.await_life(name, life)?;
        }
        Ok(())
    }
}
