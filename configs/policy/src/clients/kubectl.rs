//! Clusters of kubectl: `server:` in its configuration.

use super::{Configuration, NamedRegistry, Variable, unquoted};

/// The files of the user.
pub(super) fn files(home: &str, variable: Variable<'_>) -> Vec<String> {
    if let Some(list) = variable("KUBECONFIG").filter(|list| !list.is_empty()) {
        return list.split(':').map(str::to_owned).collect();
    }
    let base = if home.is_empty() { "." } else { home };
    vec![format!("{base}/.kube/config")]
}

/// What a file names.
pub(super) fn read(file: &Configuration) -> Vec<NamedRegistry> {
    let lines = file.text.lines().enumerate();
    let named = lines.filter_map(|(index, line)| {
        let text = line.trim();
        let value = text
            .strip_prefix("- ")
            .unwrap_or(text)
            .trim()
            .strip_prefix("server:")?;
        Some(NamedRegistry {
            place: format!("{}:{}", file.place, index + 1),
            key: "server".to_owned(),
            value: unquoted(value.trim()).to_owned(),
        })
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use crate::clients::Client;
    use crate::clients::tests::taken;

    #[test]
    fn clusters_are_taken_from_where_users_write_them() {
        const FILE: &str = "~/.kube/config";
        for (text, expected) in [
            (
                "apiVersion: v1\nclusters:\n- cluster:\n    server: https://k.test:6443\n  name: a\n- cluster: \n    server: \"https://10.0.0.7\"\nusers:\n- user:\n    token: secret\n",
                "tls://k.test:6443 (~/.kube/config:4), tls://10.0.0.7:443 (~/.kube/config:7)",
            ),
            (
                "- server: http://127.0.0.1:8001/",
                "* http://127.0.0.1:8001 (~/.kube/config:1)",
            ),
            (
                "# server: https://no.test",
                "error: the user's configuration of kubectl names no cluster",
            ),
            (
                "server: k.test",
                "error: ~/.kube/config:1: `server` is no http or https URL of a cluster",
            ),
        ] {
            assert_eq!(
                taken(Client::Kubectl, (FILE, text), &[]),
                expected,
                "{text}"
            );
        }
    }

    #[test]
    fn a_list_of_files_is_the_users() {
        let files = Client::Kubectl.files("/home/me", &|name| {
            (name == "KUBECONFIG").then(|| "/a:relative:/b".to_owned())
        });
        assert_eq!(files, ["/a", "/b"]);
        assert_eq!(
            Client::Kubectl.files("/home/me", &|_| None),
            ["/home/me/.kube/config"]
        );
    }
}
