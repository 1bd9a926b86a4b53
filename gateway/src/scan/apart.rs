//! What takes long to look at is looked at beside what is sent and received: it goes
//! to a thread, and comes back with what may go on. There is a thread for each processor
//! but one, up to a bound, and one in any case; the thread that sends and receives never
//! takes over. What waits for a thread has turns of a few milliseconds, first one of each
//! sandbox and then one of each content of it, so that nobody waits for all the work of
//! others. Nothing is at work for content that was given up.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, mpsc};
use std::task::{Context, Poll, ready};
use std::thread;
use std::time::Instant;

use tokio::sync::oneshot;

use crate::body::Stopped;
use crate::limits;

/// The threads of this process, and what waits for them.
static POOL: Mutex<ThreadPool> = Mutex::new(ThreadPool {
    most: 1,
    made: 0,
    idle: 0,
    last: 0,
    owners: VecDeque::new(),
});

/// Something waits.
static MORE: Condvar = Condvar::new();

/// Threads that scan.
struct ThreadPool {
    /// How many there may be.
    most: usize,
    made: usize,
    /// How many wait for work.
    idle: usize,
    /// The number that was given last.
    last: u64,
    /// Those for whom something waits, whose turn is next in front. Each content has one
    /// task at most, so there are no more than contents that are open.
    owners: VecDeque<TurnOwner>,
}

/// Somebody whose contents take turns among themselves.
struct TurnOwner {
    id: usize,
    tasks: VecDeque<Task>,
}

/// What waits for a thread.
struct Task {
    owner: usize,
    number: u64,
    turn: Box<dyn Turn>,
}

/// Whether work is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkStep {
    More,
    Done,
}

/// Work in steps that take a few milliseconds.
pub(super) trait Work: Send + 'static {
    /// Whose it is: each has as many turns as the others.
    fn owner(&self) -> usize;

    /// What ends a step early once nobody waits.
    fn halt(&self) -> Arc<AtomicBool>;

    /// Does a step.
    fn step(&mut self) -> WorkStep;
}

/// The same whatever the work is.
trait Turn: Send {
    fn step(&mut self) -> WorkStep;

    /// Whether nobody waits for it.
    fn is_given_up(&self) -> bool;

    /// Brings it back.
    fn end(self: Box<Self>);
}

/// Work with the ways back.
struct Job<W> {
    work: W,
    back: oneshot::Sender<W>,
    /// Nothing is ever sent: it is gone once nobody works for the task.
    at_work: mpsc::Sender<()>,
}

impl<W: Work> Turn for Job<W> {
    fn step(&mut self) -> WorkStep {
        if self.is_given_up() {
            return WorkStep::Done;
        }
        self.work.step()
    }

    fn is_given_up(&self) -> bool {
        self.back.is_closed()
    }

    fn end(self: Box<Self>) {
        let Self {
            work,
            back,
            at_work,
        } = *self;
        // Nobody waits for it anymore where the content was given up.
        back.send(work).ok();
        // INVARIANT: last; whoever waits for it takes the work and its records as done with.
        drop(at_work);
    }
}

impl ThreadPool {
    /// The task whose turn it is.
    fn next(&mut self) -> Option<Task> {
        let mut owner = self.owners.pop_front()?;
        let task = owner.tasks.pop_front();
        if !owner.tasks.is_empty() {
            self.owners.push_back(owner);
        }
        task
    }

    /// Has a task wait behind the others of its owner.
    fn wait(&mut self, task: Task) {
        match self.owners.iter_mut().find(|own| own.id == task.owner) {
            Some(own) => own.tasks.push_back(task),
            None => self.owners.push_back(TurnOwner {
                id: task.owner,
                tasks: VecDeque::from([task]),
            }),
        }
    }

    /// Takes back what has not begun its turn.
    fn withdraw(&mut self, number: u64) -> Option<Task> {
        let is_it = |task: &Task| task.number == number;
        let has_it = |own: &TurnOwner| own.tasks.iter().any(is_it);
        let place = self.owners.iter().position(has_it)?;
        let own = self.owners.get_mut(place)?;
        let task = own.tasks.iter().position(is_it);
        let task = task.and_then(|at| own.tasks.remove(at));
        if own.tasks.is_empty() {
            self.owners.remove(place);
        }
        task
    }
}

/// Sees how many threads may scan beside this one; they are made when they are needed
/// first. Reads files, so it comes before the process is confined.
pub(crate) fn count_processors() {
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let beside = processors.saturating_sub(1);
    if let Some(mut pool) = pool() {
        pool.most = beside.clamp(1, limits::SCANNERS_MAX);
    }
}

fn pool() -> Option<MutexGuard<'static, ThreadPool>> {
    POOL.lock().ok()
}

/// Has the one thread that there is in any case, once the process is confined: later the
/// system may have none left.
///
/// # Errors
/// It has none.
pub(crate) fn start_first() -> std::io::Result<()> {
    let mut pool = pool().ok_or_else(|| std::io::Error::other("its lock is broken"))?;
    start()?;
    pool.made = pool.made.saturating_add(1);
    Ok(())
}

/// One more thread, unless the system has none.
fn start() -> std::io::Result<()> {
    let made = thread::Builder::new()
        .name("scan".to_owned())
        .stack_size(limits::SCANNER_STACK_BYTES)
        .spawn(|| {
            let _alive = Alive;
            while let Some(task) = wait_for_task() {
                act(task);
            }
        });
    made.map(drop)
}

/// A thread that is there.
struct Alive;

impl Drop for Alive {
    /// Only where a panic unwinds, as in tests: another one takes its place.
    fn drop(&mut self) {
        if let Some(mut pool) = pool() {
            pool.made = pool.made.saturating_sub(1);
        }
    }
}

fn wait_for_task() -> Option<Task> {
    let mut pool = pool()?;
    loop {
        if let Some(task) = pool.next() {
            return Some(task);
        }
        pool.idle = pool.idle.saturating_add(1);
        pool = MORE.wait(pool).ok()?;
        pool.idle = pool.idle.saturating_sub(1);
    }
}

/// Gives a task its turn.
fn act(mut task: Task) {
    let end = Instant::now() + limits::SCAN_TURN_TIME;
    loop {
        if task.turn.step() == WorkStep::Done {
            return task.turn.end();
        }
        if Instant::now() >= end {
            break;
        }
    }
    // The thread itself goes on with whoever is next. Whoever gave it up looked for it here
    // already or looks yet, and does not wait for the turns of others.
    let pool = pool();
    match pool {
        Some(mut pool) if !task.turn.is_given_up() => pool.wait(task),
        pool => {
            drop(pool);
            task.turn.end();
        }
    }
}

/// Has a task wait for a thread; the result is its number. Without any thread it is gone,
/// and what it was for ends.
fn submit(owner: usize, turn: Box<dyn Turn>) -> u64 {
    let Some(mut pool) = pool() else { return 0 };
    pool.last = pool.last.wrapping_add(1);
    let number = pool.last;
    let waiting: usize = pool.owners.iter().map(|own| own.tasks.len()).sum();
    if pool.idle <= waiting && pool.made < pool.most && start().is_ok() {
        pool.made = pool.made.saturating_add(1);
    }
    if pool.made > 0 {
        pool.wait(Task {
            owner,
            number,
            turn,
        });
        MORE.notify_one();
    }
    number
}

/// Work that is done elsewhere.
#[derive(Debug)]
pub(super) struct Apart<W> {
    back: oneshot::Receiver<W>,
    /// In a mutex only because what is sent must be shared by reference.
    at_work: Mutex<mpsc::Receiver<()>>,
    halt: Arc<AtomicBool>,
    number: u64,
    /// Whether somebody has the work again.
    is_back: bool,
}

impl<W: Work> Apart<W> {
    /// Has this done.
    pub(super) fn begin(work: W) -> Self {
        let (back, brought) = oneshot::channel();
        let (mark, at_work) = mpsc::channel();
        let (owner, halt) = (work.owner(), work.halt());
        let job = Job {
            work,
            back,
            at_work: mark,
        };
        Self {
            back: brought,
            at_work: Mutex::new(at_work),
            halt,
            number: submit(owner, Box::new(job)),
            is_back: false,
        }
    }

    /// The work as it is now.
    ///
    /// # Errors
    /// Nothing more may go on.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<W, Stopped>> {
        let brought = ready!(Pin::new(&mut self.back).poll(context));
        self.is_back = true;
        Poll::Ready(brought.map_err(|_| Stopped::Lost))
    }
}

impl<W> Drop for Apart<W> {
    /// Waits until the thread has let go, which it does within a piece of what it decodes:
    /// what is given up costs nobody else anything, and its records are written before the
    /// session ends.
    fn drop(&mut self) {
        self.back.close();
        if !self.is_back {
            self.halt.store(true, Ordering::Relaxed);
        }
        let withdrawn = pool().and_then(|mut pool| pool.withdraw(self.number));
        drop(withdrawn);
        if let Ok(at_work) = self.at_work.get_mut() {
            at_work.recv().ok();
        }
    }
}
