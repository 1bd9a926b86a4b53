//! Long content is looked at beside what is sent and received: its guard goes to
//! a thread of its own with some pieces, and comes back with what may go on. There
//! are as many threads as processors have nothing else to do; content beyond is
//! looked at where it is.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Guard;
use super::messages::Stopped;
use crate::limits;

/// The threads of this process.
static POOL: Mutex<Pool> = Mutex::new(Pool {
    idle: Vec::new(),
    unmade: 0,
});

/// Threads that scan.
struct Pool {
    idle: Vec<Worker>,
    /// How many more may be made.
    unmade: usize,
}

type Worker = mpsc::Sender<Task>;

/// What a thread gets, and the way back.
struct Task {
    guard: Guard,
    pieces: VecDeque<Bytes>,
    back: oneshot::Sender<Brought>,
}

/// What a thread brings back: the guard, and what may go on.
type Brought = (Guard, Result<Vec<Bytes>, Stopped>);

/// Lets as many threads scan beside this one as there are processors for them.
/// They are made when they are needed first.
pub(crate) fn allow() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    if let Ok(mut pool) = POOL.lock() {
        pool.unmade = processors.saturating_sub(1).min(limits::SCANNERS_MAX);
    }
}

/// A thread that has nothing to do.
#[derive(Debug)]
pub(super) struct Room(Option<Worker>);

impl Room {
    /// One of those there are, or that may be made and can.
    pub(super) fn find() -> Option<Self> {
        let mut pool = POOL.lock().ok()?;
        if let Some(worker) = pool.idle.pop() {
            return Some(Self(Some(worker)));
        }
        let left = pool.unmade.checked_sub(1)?;
        // Where the system has no more threads, content is looked at where it is.
        let worker = start()?;
        pool.unmade = left;
        Some(Self(Some(worker)))
    }
}

impl Drop for Room {
    /// A thread that is still at work takes the next after it.
    fn drop(&mut self) {
        if let (Some(worker), Ok(mut pool)) = (self.0.take(), POOL.lock()) {
            pool.idle.push(worker);
        }
    }
}

/// A new thread, unless the system has none.
fn start() -> Option<Worker> {
    let (worker, tasks) = mpsc::channel();
    // What it calls may count on being inside.
    let handle = Handle::try_current().ok()?;
    let made = thread::Builder::new()
        .name("scan".to_owned())
        .stack_size(limits::SCANNER_STACK_BYTES)
        .spawn(move || {
            let _inside = handle.enter();
            while let Ok(task) = tasks.recv() {
                act(task);
            }
        });
    made.ok().map(|_| worker)
}

fn act(task: Task) {
    let Task {
        mut guard,
        pieces,
        back,
    } = task;
    let cleared = pieces.into_iter().map(|piece| guard.pass(piece));
    let cleared = cleared.filter(|bytes| !matches!(bytes, Ok(bytes) if bytes.is_empty()));
    let cleared: Result<Vec<Bytes>, Stopped> = cleared.collect();
    // Nobody waits for it anymore where the content was given up.
    back.send((guard, cleared)).ok();
}

/// A guard at work.
#[derive(Debug)]
pub(super) struct Apart {
    back: oneshot::Receiver<Brought>,
    /// How many bytes it holds.
    waiting: usize,
    /// Free again afterwards.
    _room: Room,
}

impl Apart {
    /// Lets a guard take these pieces.
    pub(super) fn begin(room: Room, guard: Guard, pieces: VecDeque<Bytes>) -> Self {
        let coming: usize = pieces.iter().map(Bytes::len).sum();
        let waiting = guard.waiting().saturating_add(coming);
        let (back, brought) = oneshot::channel();
        if let Some(worker) = &room.0 {
            let task = Task {
                guard,
                pieces,
                back,
            };
            // A thread that is gone has dropped the way back: the content ends.
            worker.send(task).ok();
        }
        Self {
            back: brought,
            waiting,
            _room: room,
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The guard, and what it lets go.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Brought, Stopped>> {
        let brought = ready!(Pin::new(&mut self.back).poll(context));
        Poll::Ready(brought.map_err(|_| Stopped))
    }
}
