//! Random numbers of the system, for keys that live as long as this process.

/// Fills bytes.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), String> {
    let provider = rustls::crypto::ring::default_provider();
    let filled = provider.secure_random.fill(bytes);
    filled.map_err(|_| "no random numbers from the system".to_owned())
}

/// A key of marks: nobody who reads records can try values against them.
///
/// # Errors
/// The system has no random numbers.
pub(crate) fn key() -> Result<[u8; 32], String> {
    let mut key = [0; 32];
    fill(&mut key)?;
    Ok(key)
}
