//! What a command line names that stays outside: descriptors of the shell that started the
//! run, and the job server of a `make` around it. Looks at words; opens nothing.

use std::ffi::OsString;
use std::path::Path;

use crate::environment::Variables;

/// Where a descriptor stands as a file (proc(5)).
const DESCRIPTORS: [&str; 2] = ["/dev/fd/", "/proc/self/fd/"];

/// The last descriptor that a command gets.
const STANDARD_ERROR: u32 = 2;

/// Programs that ask the job server of a `make` around them.
const MAKES: [&str; 2] = ["make", "gmake"];

/// What its user is told about a command whose words or variables name such a thing.
pub(super) fn left_outside(
    command: &[OsString],
    variables: &Variables,
) -> impl Iterator<Item = String> {
    let substituted = command.iter().skip(1).find_map(substituted);
    let substituted = substituted.map(|word| {
        format!(
            "`{word}` is a descriptor of your shell, and no command gets one above \
             {STANDARD_ERROR}: start the shell inside (`outgate run -- bash -c 'cat <(echo)'`), or \
             use a pipe or a file"
        )
    });
    let served = is_served(command, variables).then(|| {
        "the jobs of the `make` around this run are counted outside it: say how many may run \
         inside (`outgate run -- make -j4`)"
            .to_owned()
    });
    substituted.into_iter().chain(served)
}

/// A word that is the path of a descriptor which stays outside, alone or behind `=`.
fn substituted(word: &OsString) -> Option<String> {
    let word = word.to_str()?;
    let path = word.rsplit('=').next()?;
    let number = DESCRIPTORS.iter().find_map(|at| path.strip_prefix(at))?;
    let number: u32 = number.parse().ok()?;
    (number > STANDARD_ERROR).then(|| path.to_owned())
}

/// Whether the command would ask a job server that it does not reach.
fn is_served(command: &[OsString], variables: &Variables) -> bool {
    let name = command.first().and_then(|program| {
        let name = Path::new(program).file_name()?;
        name.to_str()
    });
    let flags = variables.get(std::ffi::OsStr::new("MAKEFLAGS"));
    let flags = flags.map(|flags| flags.to_string_lossy());
    let is_counted = flags.is_some_and(|flags| flags.contains("--jobserver-"));
    let mut words = command.iter().skip(1).filter_map(|word| word.to_str());
    is_counted
        && name.is_some_and(|name| MAKES.contains(&name))
        && !words.any(|word| word.starts_with("-j") || word.starts_with("--jobs"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(command: &[&str], flags: &str) -> Vec<String> {
        let command: Vec<OsString> = command.iter().map(OsString::from).collect();
        let variables = Variables::from([("MAKEFLAGS".into(), flags.into())]);
        left_outside(&command, &variables).collect()
    }

    #[test]
    fn descriptors_of_the_shell_are_told_and_standard_ones_are_not() {
        for word in ["/dev/fd/63", "--file=/dev/fd/3", "/proc/self/fd/12"] {
            let said = told(&["cat", word], "");
            assert_eq!(said.len(), 1, "{word}");
        }
        for word in [
            "/dev/fd/0",
            "/dev/fd/2",
            "/dev/fd/",
            "/dev/fd/x",
            "x/dev/fd/63",
        ] {
            assert_eq!(told(&["cat", word], ""), [""; 0], "{word}");
        }
        assert_eq!(told(&["cat", "/dev/fd/63", "/dev/fd/62"], "").len(), 1);
    }

    #[test]
    fn a_job_server_is_told_to_who_would_ask_it() {
        let flags = " -j4 --jobserver-auth=fifo:/tmp/GMfifo1";
        assert_eq!(told(&["/usr/bin/make", "all"], flags).len(), 1);
        for (command, flags) in [
            (&["make", "-j2"][..], flags),
            (&["make"], "-k"),
            (&["cargo", "build"], flags),
        ] {
            assert_eq!(told(command, flags), [""; 0], "{command:?}");
        }
    }
}
