//! A line that says how far a long scan is: only on a terminal, only after a
//! while, gone at the end.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::input::Input;

/// Before it a scan is short.
const SHORT: Duration = Duration::from_millis(700);
/// Between two updates.
const BETWEEN: Duration = Duration::from_millis(120);
/// Cells of the bar.
const CELLS: u64 = 24;

/// How far the scan is.
pub(crate) struct Progress {
    is_shown: bool,
    begun: Instant,
    last: Option<Instant>,
    total: u64,
    done: u64,
}

impl Progress {
    /// At the beginning.
    pub(crate) fn new(inputs: &[Input]) -> Self {
        Self {
            is_shown: std::io::stderr().is_terminal(),
            begun: Instant::now(),
            last: None,
            total: inputs
                .iter()
                .map(|input| input.size)
                .fold(0, u64::saturating_add),
            done: 0,
        }
    }

    /// So many bytes more were scanned.
    pub(crate) fn add(&mut self, bytes: u64) {
        self.done = self.done.saturating_add(bytes);
        if !self.is_shown || self.begun.elapsed() < SHORT {
            return;
        }
        if self.last.is_none_or(|last| last.elapsed() >= BETWEEN) {
            self.last = Some(Instant::now());
            show(&format!("\r\x1b[2K{}", line(self.done, self.total)));
        }
    }

    /// Removes the line.
    pub(crate) fn clear(&mut self) {
        if self.last.take().is_some() {
            show("\r\x1b[2K");
        }
    }
}

fn show(text: &str) {
    let mut terminal = std::io::stderr().lock();
    // A closed terminal leaves nobody to tell.
    drop(terminal.write_all(text.as_bytes()));
    drop(terminal.flush());
}

fn line(done: u64, total: u64) -> String {
    let megabytes = done / 1_000_000;
    if total == 0 {
        return format!("outgate scan  {megabytes} MB");
    }
    let done = done.min(total);
    let share = |parts: u64| {
        u64::try_from(u128::from(done) * u128::from(parts) / u128::from(total)).unwrap_or(parts)
    };
    let filled: String = (0..CELLS)
        .map(|cell| if cell < share(CELLS) { '█' } else { '░' })
        .collect();
    format!(
        "outgate scan  {filled} {:3} %  {megabytes} of {} MB",
        share(100),
        total / 1_000_000
    )
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn the_bar_is_as_full_as_the_work_is_done() {
        assert!(line(0, 10_000_000).starts_with("outgate scan  ░"));
        assert!(line(5_000_000, 10_000_000).contains(" 50 %  5 of 10 MB"));
        assert!(line(20_000_000, 10_000_000).contains("100 %"));
        assert_eq!(line(3_000_000, 0), "outgate scan  3 MB");
    }
}
