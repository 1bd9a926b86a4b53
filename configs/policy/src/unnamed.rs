//! The names that a server puts to a path that leads to no file by itself: what stands for a
//! directory (`index` of nginx, `DirectoryIndex` of Apache, default documents of IIS), and
//! the endings that are left away (`try_files $uri.html`, `MultiViews`, formats of Rails).
//! Names only; nothing here knows readings or rules.

/// Files that are served for their directory.
pub(crate) const INDEXES: [&[u8]; 17] = [
    b"index.html",
    b"index.htm",
    b"index.xhtml",
    b"index.shtml",
    b"index.php",
    b"index.cgi",
    b"index.pl",
    b"index.jsp",
    b"index.asp",
    b"index.aspx",
    b"index.json",
    b"index.xml",
    b"index.txt",
    b"default.htm",
    b"default.html",
    b"default.asp",
    b"default.aspx",
];

/// Endings that are left away: of pages, of programs that make them and of formats. What
/// ends otherwise may be a name with a dot in it, such as that of a package.
const ENDINGS: [&[u8]; 20] = [
    b"html", b"htm", b"xhtml", b"shtml", b"php", b"phtml", b"asp", b"aspx", b"jsp", b"jspx",
    b"cgi", b"pl", b"json", b"xml", b"rss", b"txt", b"md", b"csv", b"yaml", b"yml",
];

/// Where the ending of a name begins, with its dot, if it is one that is left away.
pub(crate) fn ending(name: &[u8]) -> Option<usize> {
    let dot = name.iter().rposition(|byte| *byte == b'.')?;
    let ending = name.get(dot + 1..)?;
    ENDINGS.contains(&ending).then_some(dot)
}
