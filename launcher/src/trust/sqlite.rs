//! A small database in the format of SQLite 3 (its file format, "Database File Format"):
//! tables that fit a page each, made once and as a whole. Reads none and alters none.

/// Bytes of a page.
const PAGE_BYTES: usize = 4096;

/// Bytes of the header of the file, which stands in the first page.
const HEADER_BYTES: usize = 100;

/// Bytes of the header of a page that holds rows.
const LEAF_BYTES: usize = 8;

/// A page that holds rows of a table and leads to no other.
const TABLE_LEAF: u8 = 0x0d;

/// Bytes of a row that stays in its page.
const ROW_BYTES_MAX: usize = PAGE_BYTES - 35;

/// A table.
pub(super) struct DatabaseTable<'t> {
    /// Its name.
    pub(super) name: &'t str,
    /// Its columns, as they are declared. Where the first is the key of the rows, its values
    /// stand in no row.
    pub(super) columns: &'t [&'t str],
    /// Its rows by their numbers, in ascending order.
    pub(super) rows: Vec<(u64, Vec<SqlValue>)>,
}

/// A value in a row.
pub(super) enum SqlValue {
    /// None, or that of the key.
    Null,
    Bytes(Vec<u8>),
    Text(String),
    Small(u8),
}

/// A file that holds these tables. `None` where one does not fit its page.
pub(super) fn database(tables: &[DatabaseTable<'_>]) -> Option<Vec<u8>> {
    let mut schema = Vec::new();
    let mut pages = Vec::new();
    for (number, table) in (1_u8..).zip(tables) {
        let declared = format!("CREATE TABLE {} ({})", table.name, table.columns.join(", "));
        let row = vec![
            SqlValue::Text("table".to_owned()),
            SqlValue::Text(table.name.to_owned()),
            SqlValue::Text(table.name.to_owned()),
            SqlValue::Small(number.checked_add(1)?),
            SqlValue::Text(declared),
        ];
        schema.push((u64::from(number), row));
        pages.push(leaf(&[], &table.rows)?);
    }
    let count = u32::try_from(pages.len()).ok()?.checked_add(1)?;
    let first = leaf(&header(count), &schema)?;
    Some([first, pages.concat()].concat())
}

/// The header of a file of so many pages.
fn header(pages: u32) -> Vec<u8> {
    /// Encoding of texts: UTF-8.
    const UTF_8: u32 = 1;
    /// The version of SQLite that is said to have written last.
    const WRITTEN_BY: u32 = 3_040_000;
    let mut header = b"SQLite format 3\0".to_vec();
    header.extend(u16::try_from(PAGE_BYTES).unwrap_or_default().to_be_bytes());
    // Journal instead of a log, no bytes reserved, and three fractions that are fixed.
    header.extend([1, 1, 0, 64, 32, 32]);
    // Changes so far, pages, two about free pages, the schema's changes and its format.
    for number in [1, pages, 0, 0, 1, 4, 0, 0, UTF_8] {
        header.extend(number.to_be_bytes());
    }
    header.resize(HEADER_BYTES - 2 * size_of::<u32>(), 0);
    // For which count of changes the number of pages holds.
    header.extend(1_u32.to_be_bytes());
    header.extend(WRITTEN_BY.to_be_bytes());
    header
}

/// A page that begins with this and holds these rows.
fn leaf(begins: &[u8], rows: &[(u64, Vec<SqlValue>)]) -> Option<Vec<u8>> {
    let mut end = PAGE_BYTES;
    let (mut places, mut cells) = (Vec::new(), Vec::new());
    for (number, row) in rows {
        let cell = cell(*number, row)?;
        end = end.checked_sub(cell.len())?;
        places.extend(u16::try_from(end).ok()?.to_be_bytes());
        cells.push(cell);
    }
    let mut page = begins.to_vec();
    page.extend([TABLE_LEAF, 0, 0]);
    page.extend(u16::try_from(rows.len()).ok()?.to_be_bytes());
    page.extend(u16::try_from(end).ok()?.to_be_bytes());
    page.push(0);
    page.extend(places);
    debug_assert!(page.len() >= begins.len() + LEAF_BYTES);
    if page.len() > end {
        return None;
    }
    page.resize(end, 0);
    // They lie from the end of the page towards its beginning.
    page.extend(cells.into_iter().rev().flatten());
    Some(page)
}

/// A row with its number.
fn cell(number: u64, row: &[SqlValue]) -> Option<Vec<u8>> {
    let (mut kinds, mut content) = (Vec::new(), Vec::new());
    for value in row {
        let (kind, bytes): (u64, &[u8]) = match value {
            SqlValue::Null => (0, &[]),
            SqlValue::Small(number) => (1, std::slice::from_ref(number)),
            SqlValue::Bytes(bytes) => (kind(12, bytes.len())?, bytes),
            SqlValue::Text(text) => (kind(13, text.len())?, text.as_bytes()),
        };
        kinds.extend(varint(kind));
        content.extend_from_slice(bytes);
    }
    // The length of the kinds counts itself, which takes one byte up to here.
    let length = u8::try_from(kinds.len()).ok()?.checked_add(1)?;
    let record = [
        &[Some(length).filter(|length| *length < 0x80)?],
        &*kinds,
        &content,
    ]
    .concat();
    if record.len() > ROW_BYTES_MAX {
        return None;
    }
    let size = varint(u64::try_from(record.len()).ok()?);
    Some([size, varint(number), record].concat())
}

/// The kind of a value of so many bytes.
fn kind(base: u64, length: usize) -> Option<u64> {
    u64::try_from(length)
        .ok()?
        .checked_mul(2)?
        .checked_add(base)
}

/// A number in as many bytes as it takes, seven bits in each.
///
/// None of ours reaches 2^56, where the ninth byte would hold eight.
fn varint(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = number;
    loop {
        let [low, ..] = (rest & 0x7f).to_le_bytes();
        bytes.push(if bytes.is_empty() { low } else { low | 0x80 });
        rest >>= 7;
        if rest == 0 {
            bytes.reverse();
            return bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_take_the_bytes_that_they_need() {
        for (number, expected) in [
            (0, &[0][..]),
            (127, &[127]),
            (128, &[0x81, 0]),
            (16_383, &[0xff, 0x7f]),
            (16_384, &[0x81, 0x80, 0]),
        ] {
            assert_eq!(varint(number), expected, "{number}");
        }
    }

    #[test]
    fn a_table_that_fits_no_page_makes_no_file() {
        let made = |bytes: usize, rows: u64| {
            let row = |number| (number, vec![SqlValue::Bytes(vec![7; bytes])]);
            database(&[DatabaseTable {
                name: "t",
                columns: &["a"],
                rows: (1..=rows).map(row).collect(),
            }])
        };
        assert_eq!(made(4000, 1).unwrap().len(), 2 * PAGE_BYTES);
        assert_eq!(made(4070, 1), None);
        assert_eq!(made(3000, 2), None);
        assert_eq!(made(0, 0).unwrap().len(), 2 * PAGE_BYTES);
    }

    /// Whether SQLite itself, where it is installed, finds nothing wrong and all rows.
    #[test]
    fn sqlite_reads_what_was_written() {
        let rows = vec![
            (1, vec![SqlValue::Null, SqlValue::Bytes(vec![0xab; 700])]),
            (
                900_000,
                vec![SqlValue::Null, SqlValue::Text("x".to_owned())],
            ),
        ];
        let first = DatabaseTable {
            name: "first",
            columns: &["id INTEGER PRIMARY KEY", "a"],
            rows,
        };
        let second = DatabaseTable {
            name: "second",
            columns: &["b"],
            rows: Vec::new(),
        };
        let file = database(&[first, second]).unwrap();
        let path = std::env::temp_dir().join(format!("outgate-sqlite-{}", std::process::id()));
        std::fs::write(&path, file).unwrap();
        let question = "PRAGMA integrity_check; SELECT id, length(a) FROM first; \
                        INSERT INTO second VALUES (1); SELECT count(*) FROM second;";
        let asked = std::process::Command::new("sqlite3")
            .arg(&path)
            .arg(question)
            .output();
        std::fs::remove_file(&path).unwrap();
        // Where there is none, the test of a browser reads such a file.
        if let Ok(said) = asked {
            let text = String::from_utf8_lossy(&said.stdout);
            assert_eq!(text, "ok\n1|700\n900000|1\n1\n", "{said:?}");
        }
    }
}
