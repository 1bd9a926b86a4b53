//! When the tree is asked to end, and when it is killed: the guardian's, which the
//! command can neither stop nor keep busy. Pure but for the time of day.

use std::time::Duration;

use super::sys;
use crate::raw::int;

/// Where a run stands with its time. Each time is one since the machine started
/// (`CLOCK_MONOTONIC`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GuardianClock {
    /// It may run for ever.
    Unlimited,
    /// It is asked to end then.
    Asked(Duration),
    /// It was asked, and is killed then.
    Killed(Duration),
    /// It was killed.
    Over,
}

/// What is to be done now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Nothing,
    Ask,
    Kill,
}

impl GuardianClock {
    /// One that starts `now`. A time beyond all times is no limit.
    pub(super) fn new(wall_time: Option<Duration>, now: Duration) -> Self {
        let until = wall_time.and_then(|time| now.checked_add(time));
        until.map_or(Self::Unlimited, Self::Asked)
    }

    /// What is due, if the run is to end by `now` or was ordered to.
    pub(super) fn due(&mut self, now: Duration, grace: Duration) -> Due {
        match *self {
            Self::Asked(until) if now >= until => {
                *self = Self::Killed(now.saturating_add(grace));
                Due::Ask
            }
            Self::Killed(until) if now >= until => {
                *self = Self::Over;
                Due::Kill
            }
            Self::Unlimited | Self::Asked(_) | Self::Killed(_) | Self::Over => Due::Nothing,
        }
    }

    /// The run is to be asked now, unless it was.
    pub(super) fn hurry(&mut self) {
        if let Self::Unlimited | Self::Asked(_) = self {
            *self = Self::Asked(Duration::ZERO);
        }
    }

    /// How long until something is due.
    pub(super) fn wait(self, now: Duration) -> Option<Duration> {
        match self {
            Self::Asked(until) | Self::Killed(until) => Some(until.saturating_sub(now)),
            Self::Unlimited | Self::Over => None,
        }
    }
}

/// The time since the machine started.
pub(super) fn now() -> Duration {
    let mut time = [0_i64; 2];
    let slot = std::ptr::from_mut(&mut time).expose_provenance();
    sys(
        libc::SYS_clock_gettime,
        [int(libc::CLOCK_MONOTONIC), slot, 0, 0, 0, 0],
    );
    let [seconds, nanoseconds] = time.map(|part| u64::try_from(part).unwrap_or(0));
    Duration::from_secs(seconds).saturating_add(Duration::from_nanos(nanoseconds))
}

/// A time as the kernel takes it (timespec(3type)).
pub(super) fn timespec(time: Duration) -> [i64; 2] {
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    [seconds, time.subsec_nanos().into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(5);

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_run_is_asked_once_and_killed_when_the_grace_is_over() {
        let mut clock = GuardianClock::new(Some(at(10)), at(100));
        assert_eq!(clock.wait(at(100)), Some(at(10)));
        for (now, due) in [
            (109, Due::Nothing),
            (110, Due::Ask),
            (111, Due::Nothing),
            (114, Due::Nothing),
            (115, Due::Kill),
            (116, Due::Nothing),
        ] {
            assert_eq!(clock.due(at(now), GRACE), due, "{now}");
        }
        assert_eq!(clock.wait(at(116)), None);
    }

    #[test]
    fn an_order_does_not_move_what_is_due_already() {
        let mut clock = GuardianClock::new(None, at(100));
        assert_eq!(clock.wait(at(100)), None);
        assert_eq!(clock.due(at(1_000_000), GRACE), Due::Nothing);
        clock.hurry();
        assert_eq!(clock.due(at(200), GRACE), Due::Ask);
        clock.hurry();
        assert_eq!(clock.due(at(204), GRACE), Due::Nothing);
        assert_eq!(clock.due(at(205), GRACE), Due::Kill);
        clock.hurry();
        assert_eq!(clock.due(at(300), GRACE), Due::Nothing);
    }

    #[test]
    fn no_time_is_too_long() {
        let mut clock = GuardianClock::new(Some(Duration::MAX), at(1));
        assert_eq!(clock, GuardianClock::Unlimited);
        assert_eq!(clock.due(at(u64::MAX), GRACE), Due::Nothing);
        assert_eq!(timespec(Duration::MAX), [i64::MAX, 999_999_999]);
        assert!(now() > Duration::ZERO);
    }
}
