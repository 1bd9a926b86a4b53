#!/bin/sh
# Makes the Debian package of outgate: the three programs, which need no library, a manual
# page for each subcommand, completions, units of systemd where configs/systemd has some,
# and the licences of what is linked in.
#
#   configs/debian/package.sh [--programs DIR] [--output DIR]
#
# Without --programs it builds a release. Needs cargo and dpkg-deb, and no rights. The same
# sources and programs give the same package (SOURCE_DATE_EPOCH, otherwise the last commit).
# DEBFULLNAME and DEBEMAIL name who packages it; OUTGATE_DEB_COMPRESSION is xz, gzip or none.
set -eu

fail() {
    echo "package.sh: $1" >&2
    exit 1
}

here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
root=$(CDPATH='' cd -- "$here/../.." && pwd)
programs='' output=$PWD
while [ $# -gt 0 ]; do
    case $1 in
    --programs | --output)
        [ $# -ge 2 ] || fail "$1 needs a directory"
        case $1 in
        --programs) programs=$2 ;;
        --output) output=$2 ;;
        esac
        shift 2
        ;;
    *) fail "unknown argument \`$1\`: [--programs DIR] [--output DIR]" ;;
    esac
done
command -v dpkg-deb >/dev/null || fail "dpkg-deb is missing: install dpkg"

if [ -z "$programs" ]; then
    (cd "$root" && cargo build --release --locked --bins) || fail "the build failed"
    target=${CARGO_TARGET_DIR:-$root/target}
    # The target is named in .cargo/config.toml, so that its folder is between.
    programs=$target/$(rustc -vV | sed -n 's/^host: //p')/release
fi
for name in outgate outgate-gateway outgate-report; do
    [ -x "$programs/$name" ] || fail "$programs/$name is missing"
done

version=$("$programs/outgate" --version | sed 's/^outgate //')
architecture=$(dpkg --print-architecture)
: "${SOURCE_DATE_EPOCH:=$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}"
export SOURCE_DATE_EPOCH
maintainer="${DEBFULLNAME:-outgate packagers} <${DEBEMAIL:-packages@outgate.example}>"

umask 022
stage=$(mktemp -d)
trap 'rm -rf -- "$stage"' EXIT
tree=$stage/tree
doc=$tree/usr/share/doc/outgate
mkdir -p "$tree/DEBIAN" "$tree/usr/bin" "$tree/usr/share/man" "$doc" \
    "$tree/usr/share/bash-completion/completions" "$tree/usr/share/zsh/vendor-completions" \
    "$tree/usr/share/fish/vendor_completions.d" "$tree/usr/share/lintian/overrides"

for name in outgate outgate-gateway outgate-report; do
    install -m 755 "$programs/$name" "$tree/usr/bin/$name"
    strip --strip-unneeded "$tree/usr/bin/$name" 2>/dev/null || true
done
"$programs/outgate" man "$tree/usr/share/man/man1"
gzip -9n "$tree"/usr/share/man/man1/*.1
"$programs/outgate" completions bash >"$tree/usr/share/bash-completion/completions/outgate"
"$programs/outgate" completions zsh >"$tree/usr/share/zsh/vendor-completions/_outgate"
"$programs/outgate" completions fish >"$tree/usr/share/fish/vendor_completions.d/outgate.fish"
for unit in "$root"/configs/systemd/*.service "$root"/configs/systemd/*.socket; do
    [ -e "$unit" ] || continue
    mkdir -p "$tree/usr/lib/systemd/system"
    install -m 644 "$unit" "$tree/usr/lib/systemd/system/"
done

# What is linked in: its licences in short, and their texts as its authors ship them.
(cd "$root" && cargo tree --locked --offline --edges normal --prefix none --format '{p}|{l}') |
    sed 's/ (\*)$//; s| (/[^|]*)||; s/ (proc-macro)//' | LC_ALL=C sort -u >"$stage/crates"
{
    echo "Crates that are linked into outgate, and their licences:"
    echo
    tr '|' '\t' <"$stage/crates"
    registry=${CARGO_HOME:-$HOME/.cargo}/registry/src
    while IFS='|' read -r crate _; do
        folder=$(echo "$crate" | sed 's/ v/-/')
        for text in "$registry"/*/"$folder"/LICENSE* "$registry"/*/"$folder"/COPYING*; do
            [ -f "$text" ] || continue
            printf '\n==== %s: %s\n\n' "$crate" "$(basename "$text")"
            cat "$text"
        done
    done <"$stage/crates"
} | gzip -9n >"$doc/LICENSES.gz"
cat >"$doc/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: outgate
Source: https://github.com/outgate/outgate

Files: *
Copyright: the authors of outgate
License: Apache-2.0
 On Debian systems the whole text is in /usr/share/common-licenses/Apache-2.0.
Comment: The programs are linked statically; the licences of the crates in them are in
 LICENSES.gz beside this file.
END
gzip -9nc "$root/CHANGELOG.md" >"$doc/NEWS.md.gz"
install -m 644 "$root/configs/README.md" "$doc/policies.md"
printf 'outgate (%s) unstable; urgency=medium\n\n  * See NEWS.md.gz.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$(LC_ALL=C date -u -R -d "@$SOURCE_DATE_EPOCH")" |
    gzip -9n >"$doc/changelog.gz"
echo 'outgate: statically-linked-binary' >"$tree/usr/share/lintian/overrides/outgate"

size=$(du -ks --apparent-size "$tree/usr" | cut -f1)
cat >"$tree/DEBIAN/control" <<END
Package: outgate
Version: $version
Architecture: $architecture
Maintainer: $maintainer
Installed-Size: $size
Recommends: ca-certificates
Section: admin
Priority: optional
Homepage: https://github.com/outgate/outgate
Description: run a command so that nothing leaves it except what rules allow
 outgate confines a command and decides every byte that it sends: by host, method and path,
 with a look into TLS, a scan for credentials on their way out, and a record of every
 decision that cannot be altered unseen. It needs no rights and no daemon; one gateway may
 also serve many runs.
END
(cd "$tree" && find usr -type f | LC_ALL=C sort | xargs -d '\n' md5sum) >"$tree/DEBIAN/md5sums"
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +

mkdir -p "$output"
package=$output/outgate_${version}_$architecture.deb
dpkg-deb --root-owner-group "-Z${OUTGATE_DEB_COMPRESSION:-xz}" --build "$tree" "$package" >/dev/null
if command -v lintian >/dev/null; then
    lintian --fail-on error "$package" >&2 || fail "lintian refuses $package"
fi
echo "$package"
