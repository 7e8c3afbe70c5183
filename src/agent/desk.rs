//! What an agent works with: who thinks for it, what it can do, what it may do.
//!
//! A subagent's desk is made from its caller's by taking away: there is no other way to make one.

use std::{collections::BTreeMap, env, ffi::OsString, sync::Arc};

use super::{mind::Mind, prompt::with_type, thinkers::Thinker};
use crate::{
    guard::{Hidden, Rights},
    model::{AgentName, AgentType, Team, Teammate, ToolCall},
    provider::{PROGRAMS_EXPLAINED, Provider},
    tools::{Kit, Tool, ToolSet},
};

/// Variables of the daemon's environment that commands of the team get, too: what a toolchain needs
/// to run. Keys are none of them.
const PASSED_ON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "TMPDIR",
    "TZ",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOPATH",
    "GOCACHE",
    "GOROOT",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_HOME",
    "NVM_DIR",
    "NODE_PATH",
    "PNPM_HOME",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "CONDA_PREFIX",
    "GEM_HOME",
    "DOTNET_ROOT",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
];

/// What one agent works with.
pub struct Desk {
    /// What it is.
    pub agent_type: AgentType,
    /// What it is told about itself.
    pub system: String,
    /// Who thinks for it.
    pub provider: Arc<dyn Provider>,
    /// With what, for its subagents.
    pub mind: Mind,
    /// What it can do.
    pub tools: ToolSet,
    /// What its tools work on.
    pub kit: Kit,
    /// What it may do.
    pub rights: Rights,
    /// Whether it may change nothing before a plan is approved.
    pub plan_required: bool,
}

/// What a teammate is told, and who thinks with that.
pub struct Told {
    /// Its system prompt.
    pub system: String,
    /// Who thinks for it.
    pub thinker: Thinker,
}

impl Desk {
    /// A teammate's desk; `tools` are all there are, and `kit` is the team's.
    pub fn of_teammate(
        team: &Team,
        name: &AgentName,
        teammate: &Teammate,
        kit: Kit,
        tools: &ToolSet,
        told: Told,
    ) -> Self {
        let agent_type = team
            .type_of(name)
            .unwrap_or_else(|| crate::base::broken("every teammate's type was looked up"));
        let rights = Rights::new(teammate.permission_mode, team.rules.clone()).narrowed(agent_type);
        Self {
            system: told.system,
            provider: told.thinker.provider,
            mind: told.thinker.mind,
            tools: tools.narrowed(agent_type),
            kit: narrowed_kit(kit, agent_type, &rights),
            rights,
            plan_required: teammate.plan_required || agent_type.plan_required,
            agent_type: agent_type.clone(),
        }
    }

    /// The desk of a subagent of type `it`, called by whoever sits at this one and has `rights` now.
    #[must_use]
    pub fn narrowed(&self, it: &AgentType, rights: &Rights, thinker: Thinker) -> Self {
        let Thinker { mind, provider } = thinker;
        let rights = rights.narrowed(it);
        let tools = self.tools.narrowed(it);
        let names = tools.specs().iter().map(|it| it.name);
        let mut system = with_type(&self.system, it, rights.mode, names);
        // A caller with our tools was told of them; its subagent may be a program that has none.
        if provider.holds_rights().is_some() && self.provider.holds_rights().is_none() {
            system = format!("{system}\n\n{PROGRAMS_EXPLAINED}");
        }
        Self {
            agent_type: it.clone(),
            system,
            provider,
            mind,
            tools,
            kit: narrowed_kit(self.kit.clone(), it, &rights),
            rights,
            plan_required: it.plan_required,
        }
    }

    /// The same with nobody to ask.
    #[must_use]
    pub fn fail_closed(self) -> Self {
        Self { rights: self.rights.fail_closed(), ..self }
    }

    /// Whether a call that was cut off may simply be made again.
    pub fn is_repeatable(&self, call: &ToolCall) -> bool {
        self.tools.find(&call.tool).is_ok_and(Tool::is_repeatable)
    }
}

fn narrowed_kit(kit: Kit, it: &AgentType, rights: &Rights) -> Kit {
    let sizes = [kit.max_file_size, it.limits.max_file_size];
    Kit {
        hidden: Arc::new(Hidden::of(rights)),
        max_file_size: sizes.into_iter().flatten().min(),
        ..kit
    }
}

/// The whole environment of `name`'s commands.
pub fn environment(name: &AgentName) -> BTreeMap<OsString, OsString> {
    let passed = PASSED_ON.iter().filter_map(|key| Some(((*key).into(), env::var_os(key)?)));
    passed.chain([("POSTROOM_TEAMMATE".into(), name.as_str().into())]).collect()
}
