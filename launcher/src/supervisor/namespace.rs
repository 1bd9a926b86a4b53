//! Namespaces: none is made inside a run. Programs with a sandbox of their own fail by that
//! in words that say nothing of outgate, so the first refusal is told, with what to do.

use outgate_policy::printable;

use super::{Once, Supervisor};
use crate::notification::Notification;
use crate::process::executable;

/// Where no policy knows better.
const ADVICE: &str = "no sandbox can make its own inside this one; if the program has a switch for its \
    sandbox, switch it off (such as `--no-sandbox`): outgate confines it";

impl Supervisor<'_> {
    /// Tells the first attempt to make one.
    pub(super) fn on_namespace(&mut self, call: &Notification) {
        if std::mem::replace(&mut self.said.namespace, Once::Yes) == Once::Yes {
            return;
        }
        let path = executable(call.held().thread);
        let name = path.rsplit('/').next().unwrap_or_default();
        let advice = match self.own_sandboxes.as_slice() {
            [] => ADVICE.to_owned(),
            known => known.join("; "),
        };
        let line = format!(
            "outgate: denied a namespace to `{}`: {advice}",
            printable(name)
        );
        if let Some(denials) = &mut self.denials {
            denials.note(&line);
        }
        self.voice.say(&line);
    }
}
