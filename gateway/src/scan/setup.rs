//! What the policies say about the scan, in the words of its engine: detectors,
//! modes, and where credentials may go besides. Of a run's policy and a
//! gateway's the stricter holds, and only the gateway's operator says what may
//! pass. Reads policies; looks at no traffic.

use outgate_dlp::{
    Allowance, Detector, DetectorMode, Detectors, IssuerPattern, KNOWN_VALUE, OwnDetector,
    ScanPolicy, ScanSettings, Scope, Tenants, UnscannableAction,
};
use outgate_policy as policy;
use outgate_policy::{Host, Inspect, InspectDetector, InspectScope};

use crate::rules::SessionPolicies;

/// What the engine is built from.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) detectors: Detectors,
    pub(super) settings: ScanSettings,
}

/// What the policies say about the scan by one of their modes.
///
/// # Errors
/// A sentence for the user, with the place: the policy names a detector that
/// does not exist, or describes one that cannot be.
pub(super) fn setup(rules: &SessionPolicies, mode: Inspect) -> Result<Setup, String> {
    let own = rules.own().settings();
    let above = rules.above().map(policy::Policy::settings);
    let all = || [Some(own), above].into_iter().flatten();
    let strict = all().any(|settings| settings.strict == policy::Switch::On);
    let mut detectors = Detectors::shipped();
    for settings in all() {
        for described in &settings.inspect_detectors {
            add(&mut detectors, described)?;
        }
    }
    let modes = modes(&detectors, own, above)?;
    let allowances = allowances(&detectors, &above.unwrap_or(own).inspect_scopes)?;
    Ok(Setup {
        detectors,
        settings: ScanSettings {
            modes,
            policy: match mode {
                Inspect::Warn if rules.enforcement() == policy::Enforcement::MonitorAll => {
                    ScanPolicy::MonitorForms
                }
                Inspect::Warn => ScanPolicy::Monitor,
                _ if strict => ScanPolicy::Strict,
                Inspect::Block | Inspect::Off => ScanPolicy::Tiered,
            },
            unscannable: if strict {
                UnscannableAction::Refuse
            } else {
                unscannable(mode, all().map(|settings| settings.unscannable))
            },
            allowances,
            registries: Vec::new(),
            named: named(rules),
            key: crate::random::key()?,
        },
    })
}

/// What happens to content that cannot be scanned: the strictest of what the policies say.
/// Where nothing is refused that is found, limits that ran out refuse nothing either.
fn unscannable(
    mode: Inspect,
    said: impl Iterator<Item = policy::Unscannable>,
) -> UnscannableAction {
    let said = said.map(|said| match (said, mode) {
        (policy::Unscannable::Refuse, _) => UnscannableAction::Refuse,
        (policy::Unscannable::RefuseBombs, Inspect::Block) => UnscannableAction::RefuseBombs,
        (policy::Unscannable::RefuseBombs, Inspect::Warn | Inspect::Off)
        | (policy::Unscannable::Record, _) => UnscannableAction::Record,
    });
    said.fold(UnscannableAction::Record, |strictest, said| {
        match (strictest, said) {
            (UnscannableAction::Refuse, _) | (_, UnscannableAction::Refuse) => {
                UnscannableAction::Refuse
            }
            (UnscannableAction::RefuseBombs, _) | (_, UnscannableAction::RefuseBombs) => {
                UnscannableAction::RefuseBombs
            }
            (UnscannableAction::Record, UnscannableAction::Record) => UnscannableAction::Record,
        }
    })
}

/// The names that rules spell out: whoever wrote one knows whose it is.
fn named(rules: &SessionPolicies) -> Vec<String> {
    let all = std::iter::once(rules.own()).chain(rules.above());
    let names = all.flat_map(policy::Policy::spelt);
    names.map(|name| name.as_str().to_owned()).collect()
}

/// Adds a detector of the user's own, where one is described.
fn add(detectors: &mut Detectors, described: &InspectDetector) -> Result<(), String> {
    let (id, place) = (&described.id, &described.place);
    let Some(form) = &described.form else {
        return Ok(());
    };
    let made = Detector::own(&OwnDetector {
        id,
        name: &form.description,
        literals: &form.literals,
        pattern: &form.pattern,
        issuers: &form.issuers,
        tenants: match form.tenants {
            policy::HostTenancy::One => Tenants::One,
            policy::HostTenancy::Many => Tenants::Many,
        },
    });
    let made = made.map_err(|why| format!("{}: detector `{id}`: {why}", form.place))?;
    match detectors.find(id) {
        // A run below a gateway may be compiled together with its policy.
        Some(known) if *known == made => return Ok(()),
        Some(_) => {
            return Err(format!(
                "{place}: there is another detector `{id}`; give this one an id of its own"
            ));
        }
        None if id == KNOWN_VALUE => {
            return Err(format!(
                "{place}: `{id}` stands for the values of the user's own; give this detector \
                 another id"
            ));
        }
        None => {}
    }
    let added = detectors.add(vec![made]);
    added.map_err(|error| format!("{place}: {error}"))
}

/// The detector that a policy names; none where the engine knows the id as that
/// of a shape.
fn find<'a>(
    detectors: &'a Detectors,
    id: &str,
    place: &str,
) -> Result<Option<&'a Detector>, String> {
    if detectors.knows(id) {
        return Ok(detectors.find(id));
    }
    Err({
        let mut near: Vec<&str> = detectors
            .iter()
            .map(|detector| &*detector.id)
            .filter(|known| known.contains(id) || id.contains(known))
            .collect();
        near.truncate(3);
        let hint = if near.is_empty() {
            "`outgate scan --list` shows all".to_owned()
        } else {
            format!("there is {}", near.join(", "))
        };
        format!("{place}: no detector `{id}`; {hint}")
    })
}

/// The modes that policies give to detectors, the stricter where both do.
fn modes(
    detectors: &Detectors,
    own: &policy::Settings,
    above: Option<&policy::Settings>,
) -> Result<Vec<(String, DetectorMode)>, String> {
    let of = |settings: &policy::Settings, id: &str| {
        let mut all = settings.inspect_detectors.iter();
        all.find(|known| known.id == id)
            .and_then(|known| known.mode)
    };
    let mut modes: Vec<(String, DetectorMode)> = Vec::new();
    let named = above.into_iter().chain([own]);
    for described in named.flat_map(|settings| &settings.inspect_detectors) {
        let id = &described.id;
        find(detectors, id, &described.place)?;
        let mode = match above {
            None => of(own, id),
            Some(above) => stricter((of(own, id), of(above, id)), (detectors, id)),
        };
        if let Some(mode) = mode
            && !modes.iter().any(|(known, _)| known == id)
        {
            modes.push((id.clone(), engine(mode)));
        }
    }
    Ok(modes)
}

/// The stricter of what two policies say of one detector. Who says nothing means
/// what its form says, which is at least a warning, or nothing at all for those
/// that run only where somebody asks for them.
fn stricter(
    modes: (Option<Inspect>, Option<Inspect>),
    (detectors, id): (&Detectors, &str),
) -> Option<Inspect> {
    let asked_for = detectors.is_asked_for(id);
    match modes {
        (Some(one), Some(other)) => Some(one.stricter(other)),
        (Some(Inspect::Block), None) | (None, Some(Inspect::Block)) => Some(Inspect::Block),
        (Some(Inspect::Warn), None) | (None, Some(Inspect::Warn)) if asked_for => {
            Some(Inspect::Warn)
        }
        (Some(Inspect::Warn | Inspect::Off), None)
        | (None, Some(Inspect::Warn | Inspect::Off) | None) => None,
    }
}

fn engine(mode: Inspect) -> DetectorMode {
    match mode {
        Inspect::Block => DetectorMode::Block,
        Inspect::Warn => DetectorMode::Warn,
        Inspect::Off => DetectorMode::Off,
    }
}

/// Where credentials may go besides to their issuers.
fn allowances(detectors: &Detectors, scopes: &[InspectScope]) -> Result<Vec<Allowance>, String> {
    let mut allowances = Vec::new();
    for scope in scopes {
        let (id, place) = (&scope.detector, &scope.place);
        if id == KNOWN_VALUE {
            return Err(format!(
                "{place}: `{id}` is every secret of the user's own, and each is allowed by itself: \
                 `--known NAME@HOST`"
            ));
        }
        let found = find(detectors, id, place)?;
        if found.is_some_and(|found| found.scope == Scope::Never) {
            return Err(format!(
                "{place}: what `{id}` finds may go nowhere; nobody can allow it"
            ));
        }
        for host in &scope.hosts {
            allowances.push(Allowance {
                detector: id.clone(),
                hosts: pattern(host).map_err(|why| format!("{place}: {why}"))?,
            });
        }
    }
    Ok(allowances)
}

/// A host as the engine compares it: addresses without brackets.
fn pattern(host: &Host) -> Result<IssuerPattern, String> {
    IssuerPattern::parse(&super::host(host)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_the_policies_say_of_the_unscannable_the_strictest_holds() {
        use policy::Unscannable::{Record, Refuse, RefuseBombs};
        for (mode, said, expected) in [
            (
                Inspect::Block,
                vec![RefuseBombs],
                UnscannableAction::RefuseBombs,
            ),
            (Inspect::Block, vec![Record], UnscannableAction::Record),
            (Inspect::Block, vec![Refuse], UnscannableAction::Refuse),
            (
                Inspect::Block,
                vec![Record, RefuseBombs],
                UnscannableAction::RefuseBombs,
            ),
            (
                Inspect::Block,
                vec![RefuseBombs, Record],
                UnscannableAction::RefuseBombs,
            ),
            (
                Inspect::Block,
                vec![Refuse, RefuseBombs],
                UnscannableAction::Refuse,
            ),
            (
                Inspect::Block,
                vec![Record, Refuse],
                UnscannableAction::Refuse,
            ),
            (Inspect::Warn, vec![RefuseBombs], UnscannableAction::Record),
            (Inspect::Warn, vec![Refuse], UnscannableAction::Refuse),
            (Inspect::Off, vec![RefuseBombs], UnscannableAction::Record),
        ] {
            let about = format!("{mode:?} {said:?}");
            assert_eq!(unscannable(mode, said.into_iter()), expected, "{about}");
        }
    }

    #[test]
    fn of_two_policies_the_stricter_holds_for_each_detector() {
        use Inspect::{Block, Off, Warn};
        let shipped = Detectors::shipped();
        let strong = (&shipped, "github-token");
        let asked = (&shipped, "payment-card");
        let shape = (&shipped, "random-segment");
        for (own, above, always, only_asked) in [
            (None, None, None, None),
            (Some(Block), None, Some(Block), Some(Block)),
            (None, Some(Block), Some(Block), Some(Block)),
            (Some(Warn), None, None, Some(Warn)),
            (None, Some(Warn), None, Some(Warn)),
            (Some(Off), None, None, None),
            (None, Some(Off), None, None),
            (Some(Off), Some(Warn), Some(Warn), Some(Warn)),
            (Some(Warn), Some(Block), Some(Block), Some(Block)),
            (Some(Off), Some(Off), Some(Off), Some(Off)),
        ] {
            assert_eq!(stricter((own, above), strong), always, "{own:?} {above:?}");
            assert_eq!(
                stricter((own, above), asked),
                only_asked,
                "{own:?} {above:?}"
            );
            assert_eq!(
                stricter((own, above), shape),
                only_asked,
                "{own:?} {above:?}"
            );
        }
    }
}
