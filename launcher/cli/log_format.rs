//! How a service writes what it says on standard error: for people, or a JSON object on each
//! line for what collects logs.

use std::time::SystemTime;

use clap::ValueEnum;
use outgate_launcher::standard::Lines;
use outgate_launcher::voice::Voice;
use outgate_record::timestamp;
use serde_json::json;

use crate::report;

/// See the head of this file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people
    Text,
    /// An object on each line: `time`, `level`, `message`
    Json,
}

impl LogFormat {
    /// What speaks so.
    pub(crate) fn voice(self) -> Box<dyn Voice> {
        match self {
            Self::Text => Box::<report::Terminal>::default(),
            Self::Json => Box::<JsonLines>::default(),
        }
    }
}

/// Objects on lines.
#[derive(Default)]
struct JsonLines(Lines);

impl Voice for JsonLines {
    fn say(&mut self, line: &str) {
        self.0.say(&object(line, SystemTime::now()));
    }
}

/// One object: how bad it is stands at the beginning of a line for people.
fn object(line: &str, now: SystemTime) -> String {
    let line = line.strip_prefix("outgate: ").unwrap_or(line);
    let levels = [("error: ", "error"), ("warning: ", "warning")];
    let found = levels
        .iter()
        .find_map(|(prefix, level)| Some((line.strip_prefix(prefix)?, *level)));
    let (message, level) = found.unwrap_or((line, "info"));
    json!({ "time": timestamp(now), "level": level, "message": message }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_with_its_level() {
        let now = SystemTime::UNIX_EPOCH;
        for (line, level, message) in [
            (
                "outgate: the gateway listens at /g",
                "info",
                "the gateway listens at /g",
            ),
            (
                "outgate: warning: it \"allows\"\nnothing",
                "warning",
                "it \"allows\"\nnothing",
            ),
            ("outgate: error: no socket", "error", "no socket"),
            ("plain", "info", "plain"),
        ] {
            let text = object(line, now);
            assert!(!text.contains('\n'), "{text}");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(
                (&value["level"], &value["message"]),
                (&json!(level), &json!(message))
            );
            assert_eq!(value["time"], "1970-01-01T00:00:00.000Z");
        }
    }
}
