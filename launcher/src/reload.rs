//! The policy files of a run read again while it goes on, as they were named when it began.
//! What is laid down at the start and cannot change with the run must be as it was.

use std::fmt;
use std::sync::Arc;

use outgate_policy::{Context, Policy, Source, Widenings, compile};

use crate::reread::{Sound, differences, reread};

/// Reads all policy texts once.
type ReadTexts = dyn Fn() -> Result<Vec<Source>, String> + Send + Sync;

/// What was read: the texts, and in a line what is different.
pub(crate) type Rereading = Result<(Vec<Source>, String), String>;

/// How a run's policy texts are read again.
#[derive(Clone)]
pub struct Reader(Arc<ReadTexts>);

impl Reader {
    /// By this.
    pub fn new(read: impl Fn() -> Result<Vec<Source>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// The same with the texts that the run began with.
#[derive(Debug, Clone)]
pub(crate) struct Reread {
    reader: Reader,
    begun: Arc<(Vec<Source>, Context)>,
}

impl Reread {
    pub(crate) fn new(reader: Reader, begun: Vec<Source>, context: Context) -> Self {
        Self {
            reader,
            begun: Arc::new((begun, context)),
        }
    }

    /// Reads until the files stand still, and looks whether the run can go on by them in the
    /// place of its `texts`.
    pub(crate) fn read(&self, texts: &[Source]) -> Rereading {
        let (begun, context) = &*self.begun;
        let compiled = |sources: &[Source]| -> Result<Policy, String> {
            compile(sources, context).map_err(|errors| errors.to_string())
        };
        let read = &self.reader.0;
        let Sound { sources, policy } = reread(&mut || read(), context)?;
        if let Some(fixed) = Widenings::fixed(&compiled(begun)?, &policy) {
            return Err(format!(
                "`{}` is laid down when a run starts, and cannot change with it ({}); nothing \
                 changed",
                fixed.key, fixed.what
            ));
        }
        let line = differences(&compiled(texts)?, &policy).swap_remove(0);
        Ok((sources, line))
    }
}
