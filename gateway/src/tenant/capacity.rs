//! How many sandboxes and connections a shared gateway has room for: worked out from the
//! number of open files, or chosen by who runs it, as far as the open files allow. No I/O.

use outgate_handoff::ShareLimit;

use crate::config::ShareLimits;
use crate::limits;

/// How many of each a gateway has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Capacity {
    /// Sandboxes at once.
    pub(crate) sessions: usize,
    /// Of them those of one account.
    pub(crate) sessions_of_one: usize,
    /// Connections served at once.
    pub(crate) flows: usize,
    /// Of them those of one account.
    pub(crate) flows_of_one: usize,
    /// Of them those of one sandbox.
    pub(crate) flows_of_sandbox: usize,
    /// Unused connections to origins that one sandbox keeps.
    pub(crate) idle_origins: usize,
    /// Stub sockets of one sandbox.
    pub(crate) stubs: usize,
}

impl Capacity {
    /// What fits into this many open files, every session at its worst; one account has
    /// half, so that another still has what it takes.
    pub(crate) fn of(open_files: u64) -> Self {
        let open_files = open_files.min(limits::SHARED_DESCRIPTORS_PLANNED);
        let open_files = usize::try_from(open_files).unwrap_or(usize::MAX);
        let sessions =
            (open_files / limits::DESCRIPTORS_PER_SEAT).clamp(2, limits::SHARED_SESSIONS_MAX);
        let reserved = reserved(open_files);
        let taken = reserved.saturating_add(sessions * limits::DESCRIPTORS_PER_SESSION);
        Self {
            stubs: limits::STUBS_MAX,
            idle_origins: limits::ORIGIN_IDLE_MAX,
            ..Self::halved(sessions, flows(open_files, taken))
        }
    }

    /// Half of everything for one account, and half of that for one of its sandboxes.
    fn halved(sessions: usize, flows: usize) -> Self {
        let flows_of_one = (flows / 2).max(2);
        Self {
            sessions,
            sessions_of_one: (sessions / 2).max(1),
            flows,
            flows_of_one,
            flows_of_sandbox: (flows_of_one / 2).clamp(1, limits::FLOWS_MAX),
            idle_origins: 0,
            stubs: 0,
        }
    }

    /// The same with what `chosen` says. More sandboxes than the open files have room for
    /// at their worst keep fewer unused connections each, down to
    /// [`limits::DESCRIPTORS_PER_SESSION_LEAST`].
    ///
    /// # Errors
    /// A sentence for who runs the gateway: they do not fit, or contradict one another.
    pub(crate) fn chosen(open_files: u64, chosen: &ShareLimits) -> Result<Self, String> {
        let mut own = Self::of(open_files);
        let value = |limit| chosen.of(limit);
        let all = value(ShareLimit::Sandboxes);
        let of_one = value(ShareLimit::SandboxesPerUser);
        own.sessions = all.unwrap_or_else(|| own.sessions.max(of_one.unwrap_or(0)));
        let half = (own.sessions / 2).max(1);
        own.sessions_of_one = of_one.unwrap_or(half);
        own.make_room(usize::try_from(open_files).unwrap_or(usize::MAX))?;
        own.choose_flows(chosen)?;
        let pairs = [
            (
                own.sessions_of_one,
                own.sessions,
                ShareLimit::SandboxesPerUser,
                ShareLimit::Sandboxes,
            ),
            (
                own.flows_of_one,
                own.flows,
                ShareLimit::ConnectionsPerUser,
                ShareLimit::Connections,
            ),
            (
                own.flows_of_sandbox,
                own.flows_of_one,
                ShareLimit::ConnectionsPerSandbox,
                ShareLimit::ConnectionsPerUser,
            ),
        ];
        for (part, whole, narrow, wide) in pairs {
            if part > whole {
                let (narrow, wide) = (narrow.option(), wide.option());
                return Err(format!("`{narrow} {part}` is more than `{wide} {whole}`"));
            }
        }
        Ok(own)
    }

    /// Shares the open files out among sandboxes and connections.
    fn make_room(&mut self, open_files: usize) -> Result<(), String> {
        let before = Self::of(u64::try_from(open_files).unwrap_or(u64::MAX));
        if self.sessions <= before.sessions {
            return Ok(());
        }
        let least = limits::DESCRIPTORS_PER_SESSION_LEAST;
        // Half for sandboxes, half for what they do.
        let reserved = reserved(open_files);
        let room = open_files.saturating_sub(reserved) / 2;
        let each = (room / self.sessions).min(limits::DESCRIPTORS_PER_SESSION);
        if each < least {
            let needed = reserved.saturating_add(self.sessions.saturating_mul(2 * least));
            return Err(format!(
                "`{} {}` needs {needed} open files, and this process may have {open_files}; {}",
                ShareLimit::Sandboxes.option(),
                self.sessions,
                MORE_FILES,
            ));
        }
        self.stubs = if each == limits::DESCRIPTORS_PER_SESSION {
            limits::STUBS_MAX
        } else {
            limits::STUBS_LEAST
        };
        let spare = each.saturating_sub(limits::DESCRIPTORS_OF_SESSION + self.stubs);
        self.idle_origins = spare.min(limits::ORIGIN_IDLE_MAX);
        let taken = reserved.saturating_add(self.sessions.saturating_mul(each));
        let halved = Self::halved(self.sessions, flows(open_files, taken));
        self.flows = halved.flows;
        self.flows_of_one = halved.flows_of_one;
        self.flows_of_sandbox = halved.flows_of_sandbox;
        Ok(())
    }

    fn choose_flows(&mut self, chosen: &ShareLimits) -> Result<(), String> {
        if let Some(flows) = chosen.of(ShareLimit::Connections) {
            if flows > self.flows {
                return Err(format!(
                    "`{} {flows}` is more than the {} that the open files have room for; {}",
                    ShareLimit::Connections.option(),
                    self.flows,
                    MORE_FILES,
                ));
            }
            let halved = Self::halved(self.sessions, flows);
            self.flows = flows;
            self.flows_of_one = halved.flows_of_one.min(flows);
            self.flows_of_sandbox = halved.flows_of_sandbox.min(flows);
        }
        if let Some(flows) = chosen.of(ShareLimit::ConnectionsPerUser) {
            self.flows_of_one = flows;
            self.flows_of_sandbox = (flows / 2).clamp(1, limits::FLOWS_MAX);
        }
        if let Some(flows) = chosen.of(ShareLimit::ConnectionsPerSandbox) {
            self.flows_of_sandbox = flows;
        }
        Ok(())
    }
}

/// How a process gets more open files.
const MORE_FILES: &str = "raise the hard limit (`ulimit -Hn`, or `LimitNOFILE=` in a systemd unit)";

/// Open files that are for neither: those of clients of the explicit proxy that have not said
/// who they are among them.
fn reserved(open_files: usize) -> usize {
    let reserved = usize::try_from(limits::DESCRIPTORS_RESERVED).unwrap_or(0);
    reserved.saturating_add(limits::PROXY_GREETINGS_MAX.min(open_files / 8))
}

/// Connections that what is left of the open files has room for.
fn flows(open_files: usize, taken: usize) -> usize {
    let per_flow = usize::try_from(limits::DESCRIPTORS_PER_FLOW).unwrap_or(1);
    (open_files.saturating_sub(taken) / per_flow).max(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(capacity: &Capacity, open_files: u64) -> u64 {
        let each = limits::DESCRIPTORS_OF_SESSION + capacity.stubs + capacity.idle_origins;
        let greetings = usize::try_from(open_files / 8).unwrap().min(128);
        u64::try_from(160 + greetings + capacity.sessions * each + capacity.flows * 6).unwrap()
    }

    fn chosen(open_files: u64, limits: &[(ShareLimit, u32)]) -> Result<Capacity, String> {
        Capacity::chosen(open_files, &ShareLimits(limits.to_vec()))
    }

    #[test]
    fn what_is_promised_fits_into_the_open_files() {
        for open_files in [256_u64, 1024, 4096, 20_000, 65_536, u64::MAX] {
            let capacity = Capacity::of(open_files);
            assert!(
                worst(&capacity, open_files) <= open_files.max(512),
                "{open_files}: {capacity:?}"
            );
            assert_eq!(chosen(open_files, &[]), Ok(capacity));
        }
        for sandboxes in [2, 100, 200, 500, 900] {
            let capacity = chosen(20_000, &[(ShareLimit::SandboxesPerUser, sandboxes)]).unwrap();
            assert!(
                worst(&capacity, 20_000) <= 20_000,
                "{sandboxes}: {capacity:?}"
            );
            assert_eq!(
                capacity.sessions_of_one,
                usize::try_from(sandboxes).unwrap()
            );
        }
    }

    #[test]
    fn a_thousand_sandboxes_of_one_user_fit_where_their_files_do() {
        let wish = [(ShareLimit::SandboxesPerUser, 1000)];
        let capacity = chosen(20_000, &wish).unwrap();
        assert_eq!((capacity.sessions, capacity.sessions_of_one), (1000, 1000));
        assert!(capacity.flows > 1500, "{capacity:?}");
        let fault = chosen(10_000, &wish).unwrap_err();
        assert!(
            fault.contains("--sandboxes 1000") && fault.contains("LimitNOFILE="),
            "{fault}"
        );
        assert!(chosen(u64::MAX, &[(ShareLimit::Sandboxes, u32::MAX)]).is_ok());
    }

    #[test]
    fn limits_that_contradict_one_another_are_named() {
        let wide = [
            (ShareLimit::Sandboxes, 10),
            (ShareLimit::SandboxesPerUser, 11),
        ];
        let fault = chosen(20_000, &wide).unwrap_err();
        assert_eq!(
            fault,
            "`--sandboxes-per-user 11` is more than `--sandboxes 10`"
        );
        let wide = [
            (ShareLimit::ConnectionsPerUser, 10),
            (ShareLimit::ConnectionsPerSandbox, 11),
        ];
        assert!(chosen(20_000, &wide).is_err());
        assert!(chosen(20_000, &[(ShareLimit::Connections, 1_000_000)]).is_err());
        let narrow = chosen(20_000, &[(ShareLimit::Connections, 1)]).unwrap();
        assert_eq!(
            (narrow.flows, narrow.flows_of_one, narrow.flows_of_sandbox),
            (1, 1, 1)
        );
    }
}
