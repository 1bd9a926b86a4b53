//! Certificates as those see them who have to trust them.

#[cfg(test)]
mod certificates;
#[cfg(test)]
mod own;
