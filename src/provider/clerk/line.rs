//! One statement understood: which tool it calls with which input, or what it answers.
//!
//! It knows the tools by their names only and runs none.

use serde_json::{Map, Value, json};

use super::{
    keyword::Keyword,
    program::{Verdict, Voice},
    shell::{self, IsProgram},
    statement::{Prefix, Statement},
    template::{Hole, Template, Values},
    word,
};
use crate::{
    base::text,
    model::{AgentName, TypeName},
};

/// A line of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// Its first line as it was written.
    pub source: String,
    /// The marks before it.
    pub prefix: Prefix,
    /// What it does.
    pub deed: Deed,
}

/// What a line does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// It calls a tool with texts.
    Call(&'static str, Vec<(&'static str, Template)>),
    /// It runs a shell command, which is never filled in.
    Run(String),
    /// It calls a tool with an input that is given whole.
    Tool(String, Value),
    /// It answers.
    Answer(Template),
}

/// What a statement is.
pub enum Read {
    /// A line of the program.
    Line(Line),
    /// What to say to plans.
    OnPlan(Verdict),
}

impl Line {
    /// The line for a list, in at most 120 characters.
    pub fn headline(&self) -> String {
        text::headline(&self.source, 120)
    }
}

impl Deed {
    /// The tool that it calls.
    pub fn tool(&self) -> Option<&str> {
        match self {
            Self::Call(tool, _) => Some(tool),
            Self::Run(_) => Some("bash"),
            Self::Tool(tool, _) => Some(tool),
            Self::Answer(_) => None,
        }
    }

    /// The tool that it calls, and with what.
    pub fn call(&self, values: &Values<'_>) -> Option<(String, Value)> {
        let input = match self {
            Self::Call(_, texts) => {
                let filled = texts.iter().map(|(key, text)| (*key, text.filled(values)));
                Value::Object(filled.map(|(key, text)| (key.to_owned(), text.into())).collect())
            }
            Self::Run(command) => run_input(command, values),
            Self::Tool(_, input) => input.clone(),
            Self::Answer(_) => return None,
        };
        self.tool().map(|tool| (tool.to_owned(), input))
    }
}

/// Only the variables that the command mentions are set.
fn run_input(command: &str, values: &Values<'_>) -> Value {
    let mentioned = Hole::ALL.into_iter().filter(|hole| command.contains(hole.variable()));
    let env = mentioned.map(|hole| (hole.variable().to_owned(), values.variable(hole).into()));
    let env: Map<String, Value> = env.collect();
    if env.is_empty() {
        return json!({ "command": command });
    }
    json!({ "command": command, "env": env })
}

/// Understands a statement, or says what is wrong with it.
pub fn read(statement: Statement, voice: Voice, is_program: IsProgram) -> Result<Read, String> {
    let Statement { source, prefix, text, block, .. } = statement;
    if let Some(verdict) = after_on_plan(&text) {
        return match (voice, prefix == Prefix::default()) {
            (Voice::Message, _) => Err("`on plan:` belongs in a script".to_owned()),
            (Voice::Script, false) => Err("`on plan:` takes no prefix".to_owned()),
            (Voice::Script, true) => read_verdict(verdict).map(Read::OnPlan),
        };
    }
    let (keyword, rest) = Keyword::split(&text).ok_or("no line begins so")?;
    let deed = Reader { voice, is_program }.deed(keyword, rest, block)?;
    if matches!(deed, Deed::Answer(_)) && prefix != Prefix::default() {
        return Err("`answer:` takes no prefix".to_owned());
    }
    Ok(Read::Line(Line { source, prefix, deed }))
}

fn after_on_plan(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("on")?.strip_prefix([' ', '\t'])?.trim_start();
    rest.strip_prefix("plan")?.trim_start().strip_prefix(':')
}

fn read_verdict(text: &str) -> Result<Verdict, String> {
    let text = text.trim();
    let (word, why) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    match (word, why.trim()) {
        ("approve", "") => Ok(Verdict::Approve),
        ("reject", "") => Ok(Verdict::Reject(Template::new("rejected", Voice::Message))),
        ("reject", why) => Ok(Verdict::Reject(Template::new(why, Voice::Script))),
        _ => Err("write `on plan: approve` or `on plan: reject WHY`".to_owned()),
    }
}

struct Reader {
    voice: Voice,
    is_program: IsProgram,
}

impl Reader {
    fn deed(&self, keyword: Keyword, rest: &str, block: Option<String>) -> Result<Deed, String> {
        match keyword {
            Keyword::Read => self.words("read_file", &["path"], 1, rest),
            Keyword::List => self.words("list_files", &["path"], 0, rest),
            Keyword::Glob => self.words("glob", &["pattern"], 1, rest),
            Keyword::Grep => self.words("grep", &["pattern", "path"], 1, rest),
            Keyword::Write => self.write(rest, block),
            Keyword::Edit => self.edit(rest),
            Keyword::Run => self.run(rest),
            Keyword::Task => Ok(Deed::Call("task_create", vec![("title", self.text(rest)?)])),
            Keyword::Tell => self.send("team_send", rest),
            Keyword::Ask => self.send("team_ask", rest),
            Keyword::Delegate => self.delegate(rest),
            Keyword::Plan => Ok(Deed::Call("submit_plan", vec![("plan", self.text(rest)?)])),
            Keyword::Tool => self.tool(rest),
            Keyword::Answer => Ok(Deed::Answer(self.text(rest)?)),
        }
    }

    fn words(
        &self,
        tool: &'static str,
        keys: &[&'static str],
        least: usize,
        rest: &str,
    ) -> Result<Deed, String> {
        let words = word::split_all(rest)?;
        if words.len() < least {
            return Err("a word is missing".to_owned());
        }
        if words.len() > keys.len() {
            return Err("there are words too many: one with blanks is put in quotes".to_owned());
        }
        if words.iter().any(String::is_empty) {
            return Err("a word is empty".to_owned());
        }
        let texts = keys.iter().copied().zip(words.iter().map(|word| self.template(word)));
        Ok(Deed::Call(tool, texts.collect()))
    }

    fn write(&self, rest: &str, block: Option<String>) -> Result<Deed, String> {
        let (path, content) = match block {
            None => split_colon(rest, "`write PATH: TEXT` or `write PATH <<END`")?,
            Some(block) => {
                let (path, more) = word::split_first(rest)?.unwrap_or_default();
                if more.contains('\n') {
                    return Err("nothing indented may stand behind its text".to_owned());
                }
                (path.trim_end_matches(':').to_owned(), block)
            }
        };
        let texts = vec![("path", self.word(&path)?), ("content", self.template(&content))];
        Ok(Deed::Call("write_file", texts))
    }

    fn edit(&self, rest: &str) -> Result<Deed, String> {
        let form = "`edit PATH: OLD => NEW`";
        let (path, change) = split_colon(rest, form)?;
        // An arrow on a line of its own parts texts of several lines, which may have arrows too.
        let (old, new) = (change.split_once("\n=>\n"))
            .or_else(|| change.split_once(" => "))
            .or_else(|| Some((change.strip_suffix("=>")?.strip_suffix([' ', '\n'])?, "")))
            .ok_or_else(|| format!("write {form}"))?;
        if old.is_empty() {
            return Err("the old text is missing".to_owned());
        }
        let change = [("old", self.template(old)), ("new", self.template(new))];
        let texts = [("path", self.word(&path)?)].into_iter().chain(change);
        Ok(Deed::Call("edit_file", texts.collect()))
    }

    fn run(&self, rest: &str) -> Result<Deed, String> {
        let command = rest.trim();
        if let Some(hole) = self.template(command).hole() {
            let (written, variable) = (hole.written(), hole.variable());
            return Err(format!("a command is not filled in: for {written} use \"${variable}\""));
        }
        shell::check(command, self.is_program)?;
        Ok(Deed::Run(command.to_owned()))
    }

    fn send(&self, tool: &'static str, rest: &str) -> Result<Deed, String> {
        let (name, content) = split_colon(rest, "`tell NAME: TEXT` or `ask NAME: TEXT`")?;
        let to = self.template(&name);
        if to != Template::new(Hole::From.written(), Voice::Script) {
            AgentName::new(name).map_err(|why| why.to_string())?;
        }
        Ok(Deed::Call(tool, vec![("to", to), ("content", self.text(&content)?)]))
    }

    fn delegate(&self, rest: &str) -> Result<Deed, String> {
        let (name, task) = split_colon(rest, "`delegate TYPE: TEXT`")?;
        let name = TypeName::new(name).map_err(|why| why.to_string())?;
        let agent_type = Template::new(name.as_str(), Voice::Message);
        Ok(Deed::Call("subagent", vec![("task", self.text(&task)?), ("agent_type", agent_type)]))
    }

    fn tool(&self, rest: &str) -> Result<Deed, String> {
        let form = "write `tool NAME {json}`";
        let (name, json) = word::split_first(rest)?.ok_or(form)?;
        let input: Map<String, Value> = serde_json::from_str(json.trim())
            .map_err(|why| format!("{form}: the input is no JSON object: {why}"))?;
        if let Some(hole) = self.template(json).hole() {
            return Err(format!("JSON is not filled in: {} has no place there", hole.written()));
        }
        Ok(Deed::Tool(name, Value::Object(input)))
    }

    fn word(&self, word: &str) -> Result<Template, String> {
        if word.is_empty() {
            return Err("a word is empty".to_owned());
        }
        Ok(self.template(word))
    }

    fn text(&self, text: &str) -> Result<Template, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("the text is missing".to_owned());
        }
        Ok(self.template(text))
    }

    fn template(&self, text: &str) -> Template {
        Template::new(text, self.voice)
    }
}

/// One word, a colon, and a text behind it.
fn split_colon(rest: &str, form: &str) -> Result<(String, String), String> {
    let rest = rest.trim_start();
    let wrong = || format!("write {form}, with one word before the colon");
    let (word, text) = if rest.starts_with(['"', '\'']) {
        let (word, behind) = word::split_first(rest)?.ok_or_else(wrong)?;
        (word, behind.trim_start_matches([' ', '\t']).strip_prefix(':').ok_or_else(wrong)?)
    } else {
        let ends = |(at, _): &(usize, &str)| {
            rest.get(at + 1..).is_some_and(|it| it.is_empty() || it.starts_with([' ', '\t', '\n']))
        };
        let (at, _) = rest.match_indices(':').find(ends).ok_or_else(wrong)?;
        let (word, text) = rest.split_at_checked(at).ok_or_else(wrong)?;
        (word.trim_end().to_owned(), text.strip_prefix(':').unwrap_or(text))
    };
    let quoted = rest.starts_with(['"', '\'']);
    if word.is_empty() || (!quoted && word.contains(char::is_whitespace)) {
        return Err(wrong());
    }
    let text = text.trim_start_matches([' ', '\t']);
    Ok((word, text.strip_prefix('\n').unwrap_or(text).to_owned()))
}
