//! Where a run stands below its teammate, and what keeps delegation from going round in rings.

use crate::model::{RunId, TypeName};

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lineage {
    /// The run.
    pub run: RunId,
    /// How often was delegated on the way to it: 0 for a teammate.
    pub depth: usize,
    /// Whether it, or one above it, runs beside its caller.
    pub is_background: bool,
    /// What its processes are found by: the teammate's run, or that which runs beside it.
    pub mark: RunId,
    /// As what, and with which work, it and those above it were called.
    works: Vec<(TypeName, String)>,
}

impl Lineage {
    /// That of a teammate's own run, or of its run for a task.
    pub fn of_teammate(run: RunId, mark: RunId, as_what: &TypeName, work: &str) -> Self {
        let works = vec![(as_what.clone(), plain(work))];
        Self { run, depth: 0, is_background: false, mark, works }
    }

    /// That of a subagent called by this one; the error says why there must not be one.
    pub fn child(
        &self,
        run: RunId,
        as_what: &TypeName,
        work: &str,
        max_depth: usize,
    ) -> Result<Self, String> {
        let depth = self.depth + 1;
        if depth > max_depth {
            return Err(format!(
                "Subagent refused: recursion depth {depth} exceeds limit {max_depth}."
            ));
        }
        let given = (as_what.clone(), plain(work));
        if self.works.contains(&given) {
            return Err(format!(
                "Subagent refused: {as_what} was given this very task already, by one above you: \
                 this is a loop. Do it yourself, or give a part of it."
            ));
        }
        let works = self.works.iter().cloned().chain([given]).collect();
        Ok(Self { run, depth, works, ..self.clone() })
    }

    /// The same beside its caller.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { is_background: true, mark: self.run.clone(), ..self }
    }
}

/// A work without what does not change its meaning.
fn plain(work: &str) -> String {
    work.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_and_rings_end_a_lineage() {
        let name = |text| TypeName::named(text);
        let run = |text: &str| RunId::derived(&[text]);
        let top = Lineage::of_teammate(run("a"), run("a"), &name("general-purpose"), "do it");
        let first = top.child(run("b"), &name("explore"), "find a", 2).unwrap();
        let second = first.child(run("c"), &name("explore"), "find b", 2).unwrap();
        assert_eq!((first.depth, second.depth), (1, 2));
        assert_eq!(
            second.child(run("d"), &name("explore"), "find c", 2).unwrap_err(),
            "Subagent refused: recursion depth 3 exceeds limit 2."
        );
        for (as_what, work) in [("explore", " find \n a"), ("general-purpose", "do it")] {
            let why = second.child(run("d"), &name(as_what), work, 9).unwrap_err();
            assert!(why.contains("loop"), "{why}");
        }
        assert!(second.child(run("d"), &name("plan"), "find a", 9).is_ok());
        let beside = first.in_background().child(run("d"), &name("plan"), "x", 9).unwrap();
        assert!(beside.is_background && beside.mark == run("b"));
    }
}
