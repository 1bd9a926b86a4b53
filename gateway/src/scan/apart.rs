//! Long content is looked at beside what is sent and received: its guard goes to
//! a thread with some pieces, and comes back with what may go on. There is a thread
//! for each processor but one, up to a bound; content beyond is looked at where it
//! is. Nothing is at work for content that was given up.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Mutex, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;

use bytes::Bytes;
use tokio::sync::oneshot;

use super::Guard;
use super::messages::Stopped;
use crate::limits;

/// The threads of this process.
static POOL: Mutex<Pool> = Mutex::new(Pool {
    most: 0,
    idle: Vec::new(),
    unmade: 0,
});

/// Threads that scan.
struct Pool {
    /// How many there may be.
    most: usize,
    idle: Vec<Worker>,
    /// How many more may be made.
    unmade: usize,
}

type Worker = mpsc::Sender<Task>;

/// What a thread gets, and the ways back.
struct Task {
    guard: Guard,
    pieces: VecDeque<Bytes>,
    back: oneshot::Sender<Brought>,
    /// Nothing is ever sent: it is gone once nobody works for the task.
    at_work: mpsc::Sender<()>,
}

/// What a thread brings back: the guard, and what may go on.
type Brought = (Guard, Result<Vec<Bytes>, Stopped>);

/// Sees how many threads may scan beside this one; they are made when they are needed
/// first. Reads files, so it comes before the process is confined.
pub(crate) fn count_processors() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    if let Ok(mut pool) = POOL.lock() {
        pool.most = processors.saturating_sub(1).min(limits::SCANNERS_MAX);
        pool.unmade = pool.most;
    }
}

/// A thread that nobody else has; idle again once this is dropped.
#[derive(Debug)]
pub(super) struct Room(Option<Worker>);

impl Room {
    /// Whether there ever is one.
    pub(super) fn exists() -> bool {
        POOL.lock().is_ok_and(|pool| pool.most > 0)
    }

    /// An idle thread, or one that may be made and can.
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
    fn drop(&mut self) {
        if let (Some(worker), Ok(mut pool)) = (self.0.take(), POOL.lock()) {
            pool.idle.push(worker);
        }
    }
}

/// A new thread, unless the system has none.
fn start() -> Option<Worker> {
    let (worker, tasks) = mpsc::channel();
    let made = thread::Builder::new()
        .name("scan".to_owned())
        .stack_size(limits::SCANNER_STACK_BYTES)
        .spawn(move || {
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
        at_work,
    } = task;
    let cleared = parts(pieces)
        .take_while(|_| !back.is_closed())
        .map(|part| guard.pass(part))
        .filter(|bytes| !matches!(bytes, Ok(bytes) if bytes.is_empty()))
        .collect();
    // Nobody waits for it anymore where the content was given up.
    back.send((guard, cleared)).ok();
    // INVARIANT: last; whoever waits for it takes the guard and its records as done with.
    drop(at_work);
}

/// Pieces in parts that take little time.
fn parts(pieces: VecDeque<Bytes>) -> impl Iterator<Item = Bytes> {
    pieces.into_iter().flat_map(|mut piece| {
        std::iter::from_fn(move || {
            let part = piece.split_to(piece.len().min(limits::SCAN_PART_BYTES));
            (!part.is_empty()).then_some(part)
        })
    })
}

/// A guard at work.
#[derive(Debug)]
pub(super) struct Apart {
    back: oneshot::Receiver<Brought>,
    /// In a mutex only because what is sent must be shared by reference.
    at_work: Mutex<mpsc::Receiver<()>>,
    /// How many bytes it holds.
    waiting: usize,
    /// Free again afterwards.
    _room: Room,
}

impl Apart {
    /// Lets a guard take these pieces.
    pub(super) fn begin(mut room: Room, guard: Guard, pieces: VecDeque<Bytes>) -> Self {
        let coming: usize = pieces.iter().map(Bytes::len).sum();
        let waiting = guard.waiting().saturating_add(coming);
        let (back, brought) = oneshot::channel();
        let (mark, at_work) = mpsc::channel();
        let task = Task {
            guard,
            pieces,
            back,
            at_work: mark,
        };
        let sent = room.0.as_ref().map(|worker| worker.send(task).is_ok());
        if sent != Some(true) {
            // Only where a panic unwinds, as in tests: the thread is gone, and the task
            // with it, so the content ends.
            room.0 = None;
        }
        Self {
            back: brought,
            at_work: Mutex::new(at_work),
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

impl Drop for Apart {
    /// Waits until the thread has let go, which takes no longer than a part of the
    /// content does here: what is given up costs nobody else anything, and its records
    /// are written before the session ends.
    fn drop(&mut self) {
        self.back.close();
        if let Ok(at_work) = self.at_work.get_mut() {
            at_work.recv().ok();
        }
    }
}
