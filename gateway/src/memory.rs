//! Memory goes back to the system when many connections are done with theirs:
//! an allocator keeps what is freed below something that lives, and a gateway
//! that once served a crowd would hold that crowd's memory for good. The same
//! after the start, which needs more than what comes after it. Knows counts and
//! times alone.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::time::sleep;

use crate::limits;
use crate::tasks::Tasks;

/// Connections that are done since memory was given back.
static DONE: AtomicU32 = AtomicU32::new(0);
/// Whether it will be given back soon.
static SOON: AtomicBool = AtomicBool::new(false);

/// One turn of giving back; whoever drops it lets the next begin.
struct TrimTurn;

impl Drop for TrimTurn {
    fn drop(&mut self) {
        SOON.store(false, Ordering::Relaxed);
    }
}

/// A connection ended, or waits for a request and holds no buffers meanwhile.
/// After many of those the memory goes back, a little later and all at once.
pub(crate) fn done(tasks: &Tasks) {
    let done = DONE.fetch_add(1, Ordering::Relaxed);
    if done < limits::TRIM_CONNECTIONS || SOON.swap(true, Ordering::Relaxed) {
        return;
    }
    let turn = TrimTurn;
    tasks.spawn(async move {
        sleep(limits::TRIM_TIME).await;
        DONE.store(0, Ordering::Relaxed);
        let_go();
        drop(turn);
    });
}

/// A run begins. What its start needed, of the heap and of the program itself, is
/// let go a little later, when its first requests have been answered.
pub(crate) fn begun(tasks: &Tasks) {
    tasks.spawn(async {
        sleep(limits::TRIM_TIME).await;
        let_go();
    });
}

/// What is free, and what only rare work needs: the rest is back within a tenth of
/// a millisecond.
fn let_go() {
    outgate_sys::memory::give_back();
    outgate_sys::memory::let_program_go();
}
