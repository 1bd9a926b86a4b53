//! The file of `outgate lock`: what each step of a pipeline reached, as a policy whose lines are
//! the same wherever and however often the step runs. No times, no counts and no paths of
//! programs, so that a change of it is a change of what is reached. Text only.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};

use super::lines::quoted;
use super::{Learnt, LineKind, Risk};
use crate::limits::{LOCK_STEPS_MAX, STEP_BYTES_MAX};
use crate::printable::printable;

/// How the file begins.
const HEAD: &str = "\
# outgate.lock: what commands reach, by step. Written by `outgate lock`; keep it beside the
# code and read its changes. `outgate run --locked -- COMMAND` denies everything else.
";
/// How a step begins, before its name.
const STEP: &str = "# step: ";

/// Why a text is no lock, or a name that of no step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LockError {
    /// It does not begin as one.
    NotALock,
    /// More steps than a lock has.
    Many,
    /// The name of a step.
    Name(String),
    /// No step is called so.
    Unknown {
        /// What was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotALock => f.write_str("it does not begin as `outgate lock` writes it"),
            Self::Many => write!(f, "it has more than {LOCK_STEPS_MAX} steps"),
            Self::Name(name) => write!(
                f,
                "`{name}` is no name of a step: letters, digits, `.`, `_` and `-`, at most \
                 {STEP_BYTES_MAX} of them"
            ),
            Self::Unknown { name, known } => {
                write!(f, "no step is called `{name}`; there are {known}")
            }
        }
    }
}

impl std::error::Error for LockError {}

/// A lock: the text of each step under its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    steps: BTreeMap<String, String>,
}

impl Lock {
    /// Reads the file. What stands in a step is for the reader of policies.
    ///
    /// # Errors
    /// [`LockError`]: it was not written by `outgate lock`.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let rest = text.strip_prefix(HEAD).ok_or(LockError::NotALock)?;
        let mut steps = BTreeMap::new();
        let mut name: Option<String> = None;
        let mut own = String::new();
        for line in rest.lines() {
            if let Some(next) = line.strip_prefix(STEP) {
                check_name(next)?;
                if let Some(name) = name.replace(next.to_owned()) {
                    steps.insert(name, std::mem::take(&mut own));
                }
                continue;
            }
            if name.is_none() && !line.is_empty() {
                return Err(LockError::NotALock);
            }
            own.push_str(line);
            own.push('\n');
        }
        if let Some(name) = name {
            steps.insert(name, own);
        }
        if steps.len() > LOCK_STEPS_MAX {
            return Err(LockError::Many);
        }
        Ok(Self { steps })
    }

    /// Puts what was learnt of a step in the place of what stood there.
    ///
    /// # Errors
    /// [`LockError`]: the step has no name that it can have, or is one too many.
    pub fn put(&mut self, step: &str, learnt: &Learnt) -> Result<(), LockError> {
        check_name(step)?;
        self.steps.insert(step.to_owned(), learnt.locked());
        if self.steps.len() > LOCK_STEPS_MAX {
            return Err(LockError::Many);
        }
        Ok(())
    }

    /// The whole file.
    pub fn text(&self) -> String {
        let mut text = HEAD.to_owned();
        for (name, own) in &self.steps {
            let own = own.trim_matches('\n');
            // Writing into a text cannot fail.
            writeln!(text, "\n{STEP}{name}").ok();
            if !own.is_empty() {
                writeln!(text, "\n{own}").ok();
            }
        }
        text
    }

    /// The file with nothing but one step, and every line of it where it was.
    ///
    /// # Errors
    /// [`LockError::Unknown`]
    pub fn of_step(text: &str, step: &str) -> Result<String, LockError> {
        let lock = Self::parse(text)?;
        if !lock.steps.contains_key(step) {
            let known: Vec<String> = lock.steps.keys().map(|name| format!("`{name}`")).collect();
            return Err(LockError::Unknown {
                name: printable(step),
                known: match known.as_slice() {
                    [] => "none".to_owned(),
                    _ => known.join(", "),
                },
            });
        }
        let mut is_own = false;
        let lines = text.lines().map(|line| {
            if let Some(name) = line.strip_prefix(STEP) {
                is_own = name == step;
            }
            if is_own {
                format!("{line}\n")
            } else {
                "\n".to_owned()
            }
        });
        Ok(lines.collect())
    }
}

fn check_name(name: &str) -> Result<(), LockError> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > STEP_BYTES_MAX || !name.bytes().all(is_sign) {
        return Err(LockError::Name(printable(name)));
    }
    Ok(())
}

impl Learnt {
    /// The lines that allow, each once, with who asked and what is risky about it. Who listens
    /// is for a policy.
    fn locked(&self) -> String {
        let mut rules: Vec<(&str, &[String])> = Vec::new();
        let mut besides: Vec<(BTreeSet<&str>, BTreeSet<Risk>)> = Vec::new();
        for line in &self.lines {
            let LineKind::Allow { addresses, .. } = &line.kind else {
                continue;
            };
            let key = (line.text.as_str(), addresses.as_slice());
            let at = rules.iter().position(|own| *own == key).unwrap_or_else(|| {
                rules.push(key);
                besides.push((BTreeSet::new(), BTreeSet::new()));
                rules.len().saturating_sub(1)
            });
            if let Some((programs, risks)) = besides.get_mut(at) {
                programs.extend(line.evidence.programs.iter().map(String::as_str));
                risks.extend(line.risks.iter().filter(|risk| risk.is_lasting()));
            }
        }
        let mut text = String::new();
        for ((rule, addresses), (programs, risks)) in rules.iter().zip(&besides) {
            text.push('\n');
            if !programs.is_empty() {
                let programs: Vec<&str> = programs.iter().copied().collect();
                writeln!(text, "# by {}", programs.join(", ")).ok();
            }
            if !risks.is_empty() {
                let risks: Vec<&str> = risks.iter().map(|risk| risk.words()).collect();
                writeln!(text, "# risk: {}", risks.join("; ")).ok();
            }
            writeln!(text, "[[allow]]\nrule = {}", quoted(rule)).ok();
            if !addresses.is_empty() {
                let addresses: Vec<String> = addresses.iter().map(|own| quoted(own)).collect();
                writeln!(text, "addresses = [{}]", addresses.join(", ")).ok();
            }
        }
        text
    }
}
