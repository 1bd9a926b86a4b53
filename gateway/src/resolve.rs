//! Names to addresses: the operator's pins first, then the hosts file, then
//! the DNS, and only for names that were allowed before. The first answer
//! stays for the session, so nobody resolves twice (DNS rebinding). The only user of
//! hickory's resolver; it vets nothing and dials nothing.

use std::collections::HashMap;
use std::io::Read;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, LookupIpStrategy, NameServerConfig, ResolveHosts, ResolverConfig,
    ResolverOpts,
};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::proto::rr::Name;
use hickory_resolver::system_conf::parse_resolv_conf;
use outgate_policy::{AddressSource, DnsPin, DnsServer, HostName, Policy, Vetted};
use tokio::sync::OnceCell;

use crate::hosts::HostsFile;
use crate::limits;

/// What the machine says about names, read before the gateway confines itself
/// and not again.
#[derive(Debug, Default)]
pub(crate) struct System {
    hosts_text: String,
    hosts: OnceLock<HostsFile>,
    resolv_conf: Vec<u8>,
    lookups: AtomicU64,
    failures: AtomicU64,
}

impl System {
    /// Reads hosts(5) and resolv.conf(5). An absent file is an empty one.
    pub(crate) fn read() -> Self {
        let hosts = bounded("/etc/hosts");
        Self {
            hosts_text: String::from_utf8_lossy(&hosts).into_owned(),
            hosts: OnceLock::new(),
            resolv_conf: bounded("/etc/resolv.conf"),
            ..Self::default()
        }
    }

    /// Names that the DNS was asked for, and those of them without an answer.
    pub(crate) fn lookups(&self) -> (u64, u64) {
        let (asked, failed) = (&self.lookups, &self.failures);
        (
            asked.load(Ordering::Relaxed),
            failed.load(Ordering::Relaxed),
        )
    }

    /// The hosts file, parsed at the first question.
    pub(crate) fn hosts(&self) -> &HostsFile {
        self.hosts
            .get_or_init(|| HostsFile::parse(&self.hosts_text))
    }
}

fn bounded(path: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        file.take(limits::SYSTEM_FILE_BYTES_MAX)
            .read_to_end(&mut bytes)
            .ok();
    }
    bytes
}

/// An address a name stands for, and who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ResolvedPin {
    pub(crate) address: SocketAddr,
    pub(crate) source: AddressSource,
}

impl ResolvedPin {
    /// Where it leads what was vetted.
    pub(crate) fn of(vetted: &Vetted) -> Self {
        Self {
            address: vetted.address(),
            source: vetted.source(),
        }
    }
}

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ResolveError {
    #[error("name `{0}` has no address")]
    NoAddress(HostName),
    #[error("no DNS server answered for `{0}` within {secs} s", secs = limits::RESOLVE_TIME.as_secs())]
    Timeout(HostName),
    #[error("resolving `{0}`: {1}")]
    Failed(HostName, String),
    #[error("DNS settings: {0}")]
    Settings(String),
    #[error("more than {} names in one session", limits::RESOLVED_MAX)]
    Full,
}

#[derive(Debug, Default)]
struct CachedAnswer {
    answer: OnceCell<(Vec<IpAddr>, Option<Instant>)>,
}

/// The resolver of one sandbox. Nothing is shared between sandboxes.
#[derive(Debug)]
pub(crate) struct Resolver {
    system: Arc<System>,
    servers: Vec<DnsServer>,
    keep: DnsPin,
    client: OnceCell<TokioResolver>,
    entries: Mutex<HashMap<HostName, Arc<CachedAnswer>>>,
}

impl Resolver {
    pub(crate) fn new(system: Arc<System>, policy: &Policy) -> Self {
        Self {
            system,
            servers: policy.settings().dns_servers.clone(),
            keep: policy.settings().dns_pin,
            client: OnceCell::new(),
            entries: Mutex::new(HashMap::new()),
        }
    }

    /// The addresses of an allowed name, in the order they should be tried.
    pub(crate) async fn resolve(
        &self,
        policy: &Policy,
        name: &HostName,
        port: u16,
    ) -> Result<Vec<ResolvedPin>, ResolveError> {
        let pinned = |address| ResolvedPin {
            address,
            source: AddressSource::Pinned,
        };
        if let Some(address) = policy.pin(name, port) {
            return Ok(vec![pinned(address)]);
        }
        let listed = self.system.hosts().addresses(name);
        if !listed.is_empty() {
            let pins = listed.iter().map(|ip| pinned(SocketAddr::new(*ip, port)));
            return Ok(pins.collect());
        }
        let resolved = |ip: IpAddr| ResolvedPin {
            address: SocketAddr::new(ip, port),
            source: AddressSource::Resolved,
        };
        let addresses = self.cached(name).await?;
        Ok(addresses.into_iter().map(resolved).collect())
    }

    async fn cached(&self, name: &HostName) -> Result<Vec<IpAddr>, ResolveError> {
        let entry = self.entry(name)?;
        let answer = entry.answer.get_or_try_init(|| self.counted(name)).await;
        match answer {
            Ok((addresses, _)) => Ok(addresses.clone()),
            Err(error) => {
                // A failure is not kept: the next connection may ask again.
                if let Ok(mut entries) = self.entries.lock() {
                    entries.remove(name);
                }
                Err(error)
            }
        }
    }

    fn entry(&self, name: &HostName) -> Result<Arc<CachedAnswer>, ResolveError> {
        let mut entries = self.entries.lock().map_err(|_| ResolveError::Full)?;
        if let Some(entry) = entries.get(name) {
            let expires = entry.answer.get().and_then(|(_, expires)| *expires);
            if expires.is_none_or(|expires| expires > Instant::now()) {
                return Ok(Arc::clone(entry));
            }
        } else if entries.len() >= limits::RESOLVED_MAX {
            return Err(ResolveError::Full);
        }
        let entry = Arc::new(CachedAnswer::default());
        entries.insert(name.clone(), Arc::clone(&entry));
        Ok(entry)
    }

    async fn counted(
        &self,
        name: &HostName,
    ) -> Result<(Vec<IpAddr>, Option<Instant>), ResolveError> {
        self.system.lookups.fetch_add(1, Ordering::Relaxed);
        let answer = self.query(name).await;
        if answer.is_err() {
            self.system.failures.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    async fn query(&self, name: &HostName) -> Result<(Vec<IpAddr>, Option<Instant>), ResolveError> {
        let client = self
            .client
            .get_or_try_init(|| async { self.client() })
            .await?;
        let mut query = Name::from_ascii(name.as_str())
            .map_err(|error| ResolveError::Failed(name.clone(), error.to_string()))?;
        query.set_fqdn(true);
        // The future of the resolver is large; it lives on the heap.
        let lookup = Box::pin(client.lookup_ip(query));
        let answer = match tokio::time::timeout(limits::RESOLVE_TIME, lookup).await {
            Err(_) => return Err(ResolveError::Timeout(name.clone())),
            Ok(Err(error)) if error.is_no_records_found() || error.is_nx_domain() => {
                return Err(ResolveError::NoAddress(name.clone()));
            }
            Ok(Err(error)) => return Err(ResolveError::Failed(name.clone(), error.to_string())),
            Ok(Ok(answer)) => answer,
        };
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in answer.iter().map(|address| address.to_canonical()) {
            if addresses.len() < limits::RESOLVED_ADDRESSES_MAX && !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(ResolveError::NoAddress(name.clone()));
        }
        let expires = match self.keep {
            DnsPin::Run => None,
            DnsPin::Ttl => Some(expiry(answer.valid_until())),
        };
        Ok((addresses, expires))
    }

    fn client(&self) -> Result<TokioResolver, ResolveError> {
        let settings = |error: &dyn std::fmt::Display| ResolveError::Settings(error.to_string());
        let mut servers: Vec<NameServerConfig> = Vec::new();
        let listed = if self.servers.is_empty() {
            &[DnsServer::System][..]
        } else {
            &self.servers
        };
        for server in listed {
            match server {
                DnsServer::Address(address) => servers.push(name_server(*address)),
                DnsServer::System => {
                    let (config, _) =
                        parse_resolv_conf(&self.system.resolv_conf).map_err(|e| settings(&e))?;
                    servers.extend(config.name_servers().iter().cloned());
                }
            }
        }
        if servers.is_empty() {
            return Err(ResolveError::Settings("no server is configured".to_owned()));
        }
        let config = ResolverConfig::from_parts(None, Vec::new(), servers);
        let mut builder =
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        *builder.options_mut() = options();
        builder.build().map_err(|error| settings(&error))
    }
}

fn expiry(valid_until: Instant) -> Instant {
    let now = Instant::now();
    let (shortest, longest): (Duration, Duration) = limits::RESOLVED_TTL;
    now + valid_until
        .saturating_duration_since(now)
        .clamp(shortest, longest)
}

fn name_server(address: SocketAddr) -> NameServerConfig {
    let mut udp = ConnectionConfig::udp();
    let mut tcp = ConnectionConfig::tcp();
    udp.port = address.port();
    tcp.port = address.port();
    NameServerConfig::new(address.ip(), true, vec![udp, tcp])
}

fn options() -> ResolverOpts {
    let mut options = ResolverOpts::default();
    options.timeout = limits::RESOLVE_ATTEMPT_TIME;
    options.attempts = 2;
    options.ip_strategy = LookupIpStrategy::Ipv4AndIpv6;
    options.use_hosts_file = ResolveHosts::Never;
    options
}
