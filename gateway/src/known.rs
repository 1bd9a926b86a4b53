//! What a gateway knows of its user's secrets, so that the scan finds them
//! whatever they look like: fingerprints under a key of this process, and where
//! each may go; and the false ones that are planted beside them. Gathered
//! before the process confines itself; the values are gone when this is done.
//! Must not know how they are looked for.

use std::path::PathBuf;
use std::sync::Arc;

use outgate_dlp::{
    Detectors, Issuer, KnownBuilder, KnownNature, KnownValue, KnownValues, Plant, Scope, Tier,
};

use outgate_handoff::settings::CANARY_SEED_BYTES;
use outgate_inventory::{SecretPlaces, gather};
use outgate_policy::NamedSecret;

use crate::config::{self, OwnPlaces};
use crate::limits;
use crate::seek::SoughtCanaries;

/// What is known, without a value.
#[derive(Debug, Clone, Default)]
pub(crate) struct CredentialInventory {
    /// Fingerprints.
    pub(crate) known: Option<Arc<KnownValues>>,
    /// Where tokens of package registries may go, by detector.
    pub(crate) registries: Vec<Issuer>,
    /// What could not be read, as sentences.
    left_out: Vec<String>,
    /// False credentials; nothing where none are planted.
    pub(crate) canaries: Option<Canaries>,
}

/// False credentials that nobody may send.
#[derive(Debug, Clone)]
pub(crate) struct Canaries {
    /// They themselves, to look for in what comes back.
    pub(crate) sought: Arc<SoughtCanaries>,
}

impl Canaries {
    /// Makes those of a run, as its launcher does, and adds them to what is known.
    fn make(
        builder: &mut KnownBuilder,
        taken: &[NamedSecret],
        seed: [u8; CANARY_SEED_BYTES],
    ) -> Result<Self, String> {
        let is_taken = |plant: &Plant| match plant {
            Plant::Variable(name) => {
                std::env::var_os(name).is_some() || taken.iter().any(|own| own.name == *name)
            }
            // The private directory is new.
            Plant::File(_) => false,
        };
        let mut values = Vec::new();
        for canary in outgate_dlp::planted(seed, &is_taken) {
            let label = match canary.plant {
                Plant::Variable(name) => format!("${name}"),
                Plant::File(path) => format!("$TMPDIR/{path}"),
            };
            for value in &canary.values {
                let about = KnownValue {
                    label: label.clone(),
                    others: Vec::new(),
                    issuers: Vec::new(),
                    tier: Tier::Strong,
                    nature: KnownNature::Canary,
                };
                let added = builder.add(value, about);
                added.map_err(|unfit| format!("the canary of {label} is {unfit}"))?;
                values.push(value.expose().to_vec());
            }
        }
        Ok(Self {
            sought: Arc::new(SoughtCanaries::new(values)),
        })
    }
}

impl CredentialInventory {
    /// What could not be read, as lines for the user: some of them.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        self.left_out.iter().take(limits::LEFT_OUT_MAX).map(|line| {
            format!("outgate: warning: {line}: the scan does not know all that is in it")
        })
    }

    /// Reads what there is, and drops it; makes canaries under names that are not
    /// `taken` by secrets of the policy.
    ///
    /// # Errors
    /// A sentence: the list that the user names cannot be read, or the system
    /// has no random numbers.
    pub(crate) fn gather(
        config: &config::InventorySource,
        taken: &[NamedSecret],
    ) -> Result<Self, String> {
        let list = config.list.clone();
        let gathered = match config.own {
            OwnPlaces::Left => {
                let places = SecretPlaces {
                    list,
                    ..SecretPlaces::default()
                };
                gather(&places, std::iter::empty())
            }
            OwnPlaces::Read => {
                let home = std::env::var_os("HOME").map(PathBuf::from);
                let places = SecretPlaces {
                    home: home.filter(|home| home.is_absolute()),
                    directory: std::env::current_dir().ok(),
                    list,
                };
                gather(&places, std::env::vars_os())
            }
        };
        if gathered.is_empty() && config.canaries.is_none() {
            return Ok(Self::default());
        }
        let detectors = Detectors::shipped();
        let mut builder = KnownBuilder::new(crate::random::key()?);
        let canaries = match config.canaries {
            Some(seed) => Some(Canaries::make(&mut builder, taken, seed)?),
            None => None,
        };
        let left_out = gathered.hold(&mut builder, &detectors);
        let left_out = left_out.map_err(|line| format!("the list of secrets {line}"))?;
        let registries = gathered.registries();
        let issuers = registries.iter().flat_map(|(registry, host)| {
            let own = detectors.iter();
            let own = own.filter(|detector| detector.scope == Scope::Registry(*registry));
            own.map(|detector| Issuer {
                detector: detector.id.to_string(),
                host: host.clone(),
            })
        });
        Ok(Self {
            registries: issuers.collect(),
            known: Some(Arc::new(builder.build())),
            left_out,
            canaries,
        })
    }
}
