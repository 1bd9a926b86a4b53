//! Content on its way through a scan: bytes go in, and the number of bytes
//! that may leave comes out.

use std::fmt;
use std::sync::Arc;

use crate::destination::Destination;
use crate::finding::{Action, Finding, Stop, Unscanned};
use crate::place::{Description, Place};
use crate::ruleset::Ruleset;

/// One stream under scan.
pub struct Stream {
    rules: Arc<Ruleset>,
    host: String,
    port: u16,
    place: Place,
    bytes: Vec<u8>,
    warnings: Vec<Finding>,
    unscanned: Option<Unscanned>,
}

impl fmt::Debug for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // What it holds may be a credential.
        formatter.debug_struct("Stream").finish_non_exhaustive()
    }
}

impl Stream {
    pub(crate) fn new(
        rules: &Arc<Ruleset>,
        destination: &Destination<'_>,
        description: &Description<'_>,
    ) -> Self {
        Self {
            rules: Arc::clone(rules),
            host: destination.host.to_owned(),
            port: destination.port,
            place: description.place.clone(),
            bytes: Vec::new(),
            warnings: Vec::new(),
            unscanned: None,
        }
    }

    /// Takes the next bytes, and says how many bytes from the start of the
    /// stream may leave by now.
    ///
    /// # Errors
    /// When the stream must end here.
    pub fn push(&mut self, bytes: &[u8]) -> Result<u64, Stop> {
        self.bytes.extend_from_slice(bytes);
        Ok(0)
    }

    /// The border of a message, or a pause: everything may leave but what could
    /// still become a credential.
    ///
    /// # Errors
    /// When the stream must end here.
    pub fn end_of_message(&mut self) -> Result<u64, Stop> {
        self.finish()
    }

    /// The end.
    ///
    /// # Errors
    /// When the stream must end here.
    pub fn finish(&mut self) -> Result<u64, Stop> {
        let destination = Destination {
            host: &self.host,
            port: self.port,
        };
        let report = self.rules.whole(&destination, &self.bytes);
        for mut finding in report.findings {
            finding.place = self.place.clone();
            if finding.action == Action::Block {
                return Err(Stop::Found(Box::new(finding)));
            }
            self.warnings.push(finding);
        }
        Ok(u64::try_from(self.bytes.len()).unwrap_or(u64::MAX))
    }

    /// What was found and left, since the last call.
    pub fn warnings(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.warnings)
    }

    /// What was not looked into.
    pub fn unscanned(&self) -> Option<&Unscanned> {
        self.unscanned.as_ref()
    }
}
