//! Which registers the processor has. Of those of 64 bytes (AVX-512) nothing is made: with
//! them the scan was slower than with those of 32 on five of eight kinds of content, by 14 to
//! 19 %, and on none faster.

/// The widest registers that there is a form for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(
    all(not(target_arch = "x86_64"), not(test)),
    expect(dead_code, reason = "there is one form only")
)]
pub(crate) enum Registers {
    /// Those that every processor has.
    Plain,
    /// 32 bytes, by AVX2; with BMI1 and POPCNT, which the sieve of windows needs as well.
    Half,
}

impl Registers {
    /// All of them, to try each.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 2] = [Self::Plain, Self::Half];

    /// What this processor has.
    #[cfg(target_arch = "x86_64")]
    pub(crate) fn here() -> Self {
        let has_half = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi1")
            && std::arch::is_x86_feature_detected!("popcnt");
        if has_half { Self::Half } else { Self::Plain }
    }

    /// What this processor has.
    #[cfg(not(target_arch = "x86_64"))]
    pub(crate) fn here() -> Self {
        Self::Plain
    }

    /// These, or the widest that are there.
    #[cfg(test)]
    pub(crate) fn at_most(self) -> Self {
        match (self, Self::here()) {
            (Self::Plain, _) | (_, Self::Plain) => Self::Plain,
            (Self::Half, Self::Half) => Self::Half,
        }
    }
}
