//! How long a walk may take: a share of a processor's time, so that other programs' work does not
//! end it, and a time of day, so that a disk that does not answer does.

use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};

use super::limits::BUSY;

/// A time that a thread may take for something.
#[derive(Debug, Clone, Copy)]
pub(super) struct TimeShare {
    processor: Duration,
    until: Option<Instant>,
}

impl TimeShare {
    /// Begins `time` of this thread's own, and [`BUSY`] times as long on the wall.
    pub(super) fn begin(time: Duration) -> Self {
        Self {
            processor: taken().saturating_add(time),
            until: Instant::now().checked_add(time.saturating_mul(BUSY)),
        }
    }

    pub(super) fn is_over(&self) -> bool {
        taken() >= self.processor || self.until.is_none_or(|until| Instant::now() >= until)
    }
}

/// The processor time of this thread (clock_gettime(2)); the longest where nobody says.
fn taken() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::MAX, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_ends_by_its_own_work_and_not_by_waiting() {
        let share = TimeShare::begin(Duration::from_millis(50));
        std::thread::park_timeout(Duration::from_millis(80));
        assert!(!share.is_over(), "it waited");
        let began = Instant::now();
        while !share.is_over() {
            assert!(began.elapsed() < Duration::from_secs(20), "it never ends");
        }
        assert!(TimeShare::begin(Duration::ZERO).is_over());
    }
}
