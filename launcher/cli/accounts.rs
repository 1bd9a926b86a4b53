//! Names of users and groups to numbers, from passwd(5) and group(5). A static
//! program cannot ask the other sources of nsswitch.conf(5): they take numbers.

/// The number of a user, by name or number.
pub(crate) fn user(name: &str) -> Result<u32, String> {
    number(name, "/etc/passwd", "user")
}

/// The number of a group, by name or number.
pub(crate) fn group(name: &str) -> Result<u32, String> {
    number(name, "/etc/group", "group")
}

fn number(name: &str, file: &str, what: &str) -> Result<u32, String> {
    if let Ok(number) = name.parse() {
        return Ok(number);
    }
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    find(&text, name).ok_or_else(|| format!("{file} has no {what} `{name}`; give its number"))
}

/// The third field of the line that begins with the name.
fn find(text: &str, name: &str) -> Option<u32> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then_some(())?;
        fields.nth(1)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_whole_and_numbers_pass() {
        let text = "root:x:0:0:root:/root:/bin/sh\nagent:x:1001:1001::/home/agent:/bin/sh\nbad:x\n";
        for (name, number) in [
            ("root", Some(0)),
            ("agent", Some(1001)),
            ("agen", None),
            ("bad", None),
            ("", None),
        ] {
            assert_eq!(find(text, name), number, "{name}");
        }
        assert_eq!(user("4242"), Ok(4242));
        assert!(user("no such user").is_err());
    }
}
