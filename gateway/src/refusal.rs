//! Why something does not happen, in one shape for all who say so: fields,
//! bodies, notices and records. A denial of the policy, or a refusal of the
//! gateway itself. Text only; sends nothing.

use outgate_policy::{Denial, RuleRef, Urgency, printable};
use outgate_record::Reason;

/// A refusal, with everything that is told about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The policy said no.
    Policy(Denial),
    /// The gateway itself says no.
    Own(FirmRefusal),
}

/// A refusal that no rule can lift, though an option may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FirmRefusal {
    /// The word for fields and records, as one of a set.
    pub(crate) reason: Reason,
    /// What is refused.
    pub(crate) subject: String,
    /// Why.
    pub(crate) because: String,
    /// The option that would allow it.
    hint: Option<String>,
    /// What the person hears instead, where the command is not to be trusted.
    alarm: Option<String>,
}

impl Refusal {
    pub(crate) fn own(reason: Reason, subject: &str, because: &str) -> Self {
        Self::Own(FirmRefusal {
            reason,
            subject: printable(subject),
            because: printable(because),
            hint: None,
            alarm: None,
        })
    }

    /// The same with the option that would allow it.
    #[must_use]
    pub(crate) fn advise(mut self, hint: Option<String>) -> Self {
        if let Self::Own(own) = &mut self {
            own.hint = hint;
        }
        self
    }

    /// The same of what a person was asked about, and how that went.
    #[must_use]
    pub(crate) fn asked(self, how: &str) -> Self {
        match self {
            Self::Policy(denial) => Self::Policy(denial.asked(how)),
            own @ Self::Own(_) => own,
        }
    }

    /// The same, and something is wrong: what the person hears of it.
    #[must_use]
    pub(crate) fn alarm(mut self, what: &str) -> Self {
        if let Self::Own(own) = &mut self {
            own.alarm = Some(what.to_owned());
        }
        self
    }

    /// The same with what `mask` gives another text for; no option that would allow
    /// it where that names it too.
    #[must_use]
    pub(crate) fn masked(&self, mask: &dyn Fn(&str) -> Option<String>) -> Self {
        match self {
            Self::Policy(denial) => Self::Policy(denial.masked(mask)),
            Self::Own(own) => {
                let cover = |text: &String| mask(text).unwrap_or_else(|| text.clone());
                Self::Own(FirmRefusal {
                    reason: own.reason,
                    subject: cover(&own.subject),
                    because: cover(&own.because),
                    hint: own.hint.clone().filter(|hint| mask(hint).is_none()),
                    alarm: own.alarm.as_ref().map(cover),
                })
            }
        }
    }

    /// Whether something is wrong, beyond what is refused.
    pub(crate) fn is_alarm(&self) -> bool {
        matches!(self, Self::Own(FirmRefusal { alarm: Some(_), .. }))
    }

    /// What the person hears of an alarm.
    pub(crate) fn alarm_text(&self) -> Option<&str> {
        match self {
            Self::Own(own) => own.alarm.as_deref(),
            Self::Policy(_) => None,
        }
    }

    /// How much a person should care.
    pub(crate) fn urgency(&self) -> Urgency {
        if self.is_alarm() {
            Urgency::Alarm
        } else if self.reason().is_of_credential() {
            Urgency::Credential
        } else {
            Urgency::Denied
        }
    }

    /// What is refused, where many are told as one.
    pub(crate) fn kind_of_subject(&self) -> &str {
        if self.is_unrecorded() {
            "what cannot be recorded"
        } else {
            self.subject()
        }
    }

    /// Whether it was refused because it could not be recorded.
    pub(crate) fn is_unrecorded(&self) -> bool {
        self.reason() == Reason::Audit
    }

    /// What tells it from others that the person heard.
    pub(crate) fn key(&self) -> String {
        match self {
            Self::Own(FirmRefusal {
                alarm: Some(_),
                subject,
                ..
            }) => format!("alarm {subject}"),
            // Of many things that are not recorded one line is enough.
            Self::Own(_) if self.is_unrecorded() => Reason::Audit.token().to_owned(),
            _ => self.subject().to_owned(),
        }
    }

    /// Nothing is allowed that cannot be recorded.
    pub(crate) fn unrecorded(subject: &str) -> Self {
        Self::own(
            Reason::Audit,
            subject,
            "the audit record cannot be written, so nothing is let out",
        )
    }

    /// The same with what is behind it.
    #[must_use]
    pub(crate) fn because_of(mut self, fault: &str) -> Self {
        if let Self::Own(own) = &mut self {
            own.because.push_str(": ");
            own.because.push_str(&printable(fault));
        }
        self
    }

    pub(crate) fn reason(&self) -> Reason {
        match self {
            Self::Policy(denial) => denial.reason().into(),
            Self::Own(own) => own.reason,
        }
    }

    pub(crate) fn rule(&self) -> Option<&RuleRef> {
        match self {
            Self::Policy(denial) => denial.rule(),
            Self::Own(_) => None,
        }
    }

    pub(crate) fn subject(&self) -> &str {
        match self {
            Self::Policy(denial) => denial.subject(),
            Self::Own(own) => &own.subject,
        }
    }

    pub(crate) fn because(&self) -> &str {
        match self {
            Self::Policy(denial) => denial.because(),
            Self::Own(own) => &own.because,
        }
    }

    /// The flag that would allow it.
    pub(crate) fn hint(&self) -> Option<String> {
        match self {
            Self::Policy(denial) => denial.hint(),
            Self::Own(own) => own.hint.clone(),
        }
    }

    /// What the operator says with it.
    pub(crate) fn note(&self) -> Option<&str> {
        match self {
            Self::Policy(denial) => denial.note(),
            Self::Own(_) => None,
        }
    }

    /// One sentence, printable ASCII.
    pub(crate) fn sentence(&self) -> String {
        printable(&format!(
            "outgate denied {}: {}",
            self.subject(),
            self.because()
        ))
    }

    /// The sentence and the flag that would allow it, for those who show one
    /// line: printable ASCII.
    pub(crate) fn advice(&self) -> String {
        match self.hint() {
            Some(hint) => printable(&format!("{}; to allow it: {hint}", self.sentence())),
            None => self.sentence(),
        }
    }

    /// The line for standard error.
    pub(crate) fn notice(&self) -> String {
        if let Self::Own(FirmRefusal {
            alarm: Some(alarm),
            subject,
            ..
        }) = self
        {
            return printable(&format!("outgate: ALARM: denied {subject}: {alarm}"));
        }
        let mut line = format!("outgate: denied {} ({})", self.subject(), self.because());
        if let Some(hint) = self.hint() {
            line.push_str("; to allow: ");
            line.push_str(&hint);
        }
        if let Some(note) = self.note() {
            line.push_str("; ");
            line.push_str(note);
        }
        printable(&line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        let refusal = Refusal::own(Reason::Authority, "GET \u{1b}[2J\r\nx", "b\u{e9}cause");
        assert_eq!(
            refusal.notice(),
            "outgate: denied GET \\u{1b}[2J\\r\\nx (b\\u{e9}cause)"
        );
        assert!(refusal.sentence().is_ascii());
    }
}
