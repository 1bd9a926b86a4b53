//! Sockets that a service manager made and handed on (sd_listen_fds(3)): which descriptor is
//! which. Opens and takes nothing.

/// The first descriptor that is passed.
const LISTEN_FDS_START: i32 = 3;
/// Sockets that mean anything here.
const SOCKETS_MAX: i32 = 2;
/// The name of the admin socket (`FileDescriptorName=`).
const ADMIN: &str = "admin";

/// The numbers of what was passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedSockets {
    /// Where launchers connect.
    pub runs: i32,
    /// Where the gateway says how it is.
    pub admin: Option<i32>,
}

/// Reads what the manager says of the sockets: `$LISTEN_FDS`, and `$LISTEN_FDNAMES` if there
/// is one. The one named `admin` is the admin socket; without names there is one socket.
///
/// # Errors
/// A sentence: there is none for launchers, or more than one, or it is no number.
pub fn passed(count: Option<&str>, names: Option<&str>) -> Result<PassedSockets, String> {
    let count: i32 = count.and_then(|count| count.parse().ok()).unwrap_or(0);
    if !(1..=SOCKETS_MAX).contains(&count) {
        return Err(format!(
            "{count} sockets were inherited, not one for runs and perhaps one named `{ADMIN}`"
        ));
    }
    let names: Vec<&str> = names.unwrap_or_default().split(':').collect();
    let numbers = LISTEN_FDS_START..LISTEN_FDS_START + count;
    let named = |number: i32| {
        let position = usize::try_from(number - LISTEN_FDS_START).unwrap_or(usize::MAX);
        names.get(position).copied().unwrap_or_default()
    };
    let (admin, runs): (Vec<i32>, Vec<i32>) = numbers.partition(|number| named(*number) == ADMIN);
    match (runs.as_slice(), admin.as_slice()) {
        ([runs], []) => Ok(PassedSockets {
            runs: *runs,
            admin: None,
        }),
        ([runs], [admin]) => Ok(PassedSockets {
            runs: *runs,
            admin: Some(*admin),
        }),
        _ => Err(format!(
            "of the inherited sockets not one is for runs and at most one named `{ADMIN}` \
             (systemd: FileDescriptorName=)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_told_by_their_names() {
        let of = |count, names| passed(Some(count), names);
        let both = |runs, admin| Ok(PassedSockets { runs, admin });
        assert_eq!(of("1", None), both(3, None));
        assert_eq!(of("1", Some("gate.socket")), both(3, None));
        assert_eq!(of("2", Some("gate:admin")), both(3, Some(4)));
        assert_eq!(of("2", Some("admin:gate")), both(4, Some(3)));
        for (count, names) in [
            ("0", None),
            ("2", None),
            ("2", Some("a:b")),
            ("2", Some("admin:admin")),
            ("1", Some("admin")),
            ("3", Some("a:admin:b")),
            ("-1", None),
            ("x", None),
        ] {
            assert!(of(count, names).is_err(), "{count} {names:?}");
        }
        assert!(passed(None, None).is_err());
    }
}
