//! The policy of one run of a shared gateway: compiled below each ceiling, as it came or as it
//! was changed since.

use std::sync::Arc;

use outgate_policy::{Context, Source};

use crate::rules::{Ceiling, SessionPolicies};
use crate::serve::TimedTexts;
use crate::session::Session;

/// The policy of one run as it brought it, to be compiled below each ceiling.
#[derive(Debug, Clone)]
pub(super) struct RunPolicy {
    pub(super) sources: Vec<Source>,
    pub(super) context: Context,
    pub(super) uid: u32,
}

impl RunPolicy {
    /// The same run with other text.
    pub(super) fn with(&self, texts: &TimedTexts) -> Self {
        Self {
            sources: texts.sources.clone(),
            ..self.clone()
        }
    }

    /// Compiles it beside the others' traffic.
    pub(super) async fn rules(&self, ceiling: &Arc<Ceiling>) -> Result<SessionPolicies, String> {
        let (sources, context) = (self.sources.clone(), self.context.clone());
        let (ceiling, uid) = (Arc::clone(ceiling), self.uid);
        let compiling = move || SessionPolicies::below(&ceiling, sources, &context, uid);
        let compiled = tokio::task::spawn_blocking(compiling).await;
        compiled.map_err(|error| error.to_string())?
    }

    /// The same for text that changes the policy of a session. What it grants besides must
    /// be the ceiling's to grant, so that nobody waits for what never comes.
    pub(super) async fn changed(
        &self,
        session: &Session,
        (before, ceiling): (&Self, &Arc<Ceiling>),
    ) -> Result<SessionPolicies, String> {
        // As few of one account at once as openings.
        let Some(_place) = session.compiling().await else {
            return Err("the gateway ends".to_owned());
        };
        let rules = self.rules(ceiling).await?;
        let is_new = |source: &&Source| !before.sources.contains(source);
        let granted = self
            .sources
            .iter()
            .filter(is_new)
            .filter(|own| own.is_grant());
        let granted: Vec<Source> = granted.cloned().collect();
        if !granted.is_empty() {
            let (above, context) = (Arc::clone(ceiling), self.context.clone());
            let comparing = move || above.covers(&granted, &context);
            let compared = tokio::task::spawn_blocking(comparing).await;
            compared.map_err(|error| error.to_string())??;
        }
        no_secrets(&rules)?;
        Ok(rules)
    }
}

/// The secrets of its runs are for no shared gateway to hold.
pub(super) fn no_secrets(rules: &SessionPolicies) -> Result<(), String> {
    match rules.own().secrets().first() {
        None => Ok(()),
        Some(secret) => Err(format!(
            "a shared gateway holds no secrets of its runs ({}); run with a gateway of its own",
            secret.name()
        )),
    }
}
