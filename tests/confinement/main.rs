//! What a confined command sees and what outgate does on machines that lack
//! something: exit codes, files, environment, descriptors, errnos like the
//! kernel's, nesting, and refusals that say what is missing.

mod descriptors;
mod environment;
mod files;
mod intruder;
mod platforms;
mod shapes;
mod status;

/// A command line of words.
fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

/// `sh -c SCRIPT`.
fn shell(script: &str) -> Vec<String> {
    words(&["sh", "-c", script])
}
