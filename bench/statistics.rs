//! Medians, percentiles and the doubt about a median. Pure.

/// Where the samples of one side lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spread {
    /// A tenth of the samples is below.
    pub(crate) low: f64,
    /// The middle sample.
    pub(crate) median: f64,
    /// A tenth of the samples is above.
    pub(crate) high: f64,
}

/// A median, and the interval that holds the true one 19 times out of 20.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Estimate {
    /// Lower end of the interval.
    pub(crate) low: f64,
    /// The median of the samples.
    pub(crate) median: f64,
    /// Upper end of the interval.
    pub(crate) high: f64,
}

/// The spread of samples; zero without any.
pub(crate) fn spread(samples: &[f64]) -> Spread {
    let sorted = sort(samples);
    Spread {
        low: at(&sorted, share(sorted.len(), 1, 10)),
        median: at(&sorted, share(sorted.len(), 1, 2)),
        high: at(&sorted, share(sorted.len(), 9, 10)),
    }
}

/// The median of differences. The interval is that of the sign test: the ranks
/// n/2 -+ sqrt(n), which assumes nothing of how the differences are spread.
pub(crate) fn estimate(differences: &[f64]) -> Estimate {
    let sorted = sort(differences);
    let middle = share(sorted.len(), 1, 2);
    let reach = sorted.len().isqrt();
    let last = sorted.len().saturating_sub(1);
    Estimate {
        low: at(&sorted, middle.saturating_sub(reach)),
        median: at(&sorted, middle),
        high: at(&sorted, middle.saturating_add(reach).min(last)),
    }
}

/// `inside - bare` of each pair.
pub(crate) fn differences(bare: &[f64], inside: &[f64]) -> Vec<f64> {
    bare.iter()
        .zip(inside)
        .map(|(bare, inside)| inside - bare)
        .collect()
}

fn sort(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn share(count: usize, part: usize, whole: usize) -> usize {
    count.saturating_sub(1).saturating_mul(part) / whole
}

fn at(sorted: &[f64], index: usize) -> f64 {
    sorted.get(index).copied().unwrap_or_default()
}
