//! What a launcher is to hear of its policy, on its way. Who changes the policy never waits
//! for that: a launcher that stands still must not keep what is over in force.

use std::collections::VecDeque;
use std::sync::Mutex;

use outgate_handoff::ToLauncher;
use tokio::sync::Notify;

use crate::control::ControlSocket;

/// Frames that wait beside the generation, at most: a launcher asks for one change after
/// the other was answered.
const FRAMES_MAX: usize = 64;

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct Post {
    letters: Mutex<Letters>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Letters {
    /// The last one: those before are void with it.
    generation: Option<u64>,
    frames: VecDeque<ToLauncher>,
}

impl Post {
    /// Other rules are in force, which is told before everything else.
    pub(super) fn generation(&self, generation: u64) {
        if let Ok(mut letters) = self.letters.lock() {
            letters.generation = Some(generation);
        }
        self.news.notify_one();
    }

    /// Tells something, unless the launcher leaves too much unread.
    pub(crate) fn tell(&self, frame: ToLauncher) {
        if let Ok(mut letters) = self.letters.lock()
            && letters.frames.len() < FRAMES_MAX
        {
            letters.frames.push_back(frame);
        }
        self.news.notify_one();
    }

    /// Brings everything to the launcher, and never returns: one that does not hear any more
    /// is judged on.
    pub(crate) async fn deliver(&self, control: &ControlSocket) {
        loop {
            match self.next() {
                None => self.news.notified().await,
                Some(frame) => {
                    if control.send(&frame).await.is_err() {
                        break;
                    }
                }
            }
        }
        std::future::pending::<()>().await;
    }

    fn next(&self) -> Option<ToLauncher> {
        let mut letters = self.letters.lock().ok()?;
        let generation = letters.generation.take();
        let generation = generation.map(|generation| ToLauncher::Generation { generation });
        generation.or_else(|| letters.frames.pop_front())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_read_is_bounded_and_the_last_generation_comes_first() {
        let post = Post::default();
        for number in 0..10_000 {
            post.tell(ToLauncher::Changed(number, String::new()));
            post.generation(number);
        }
        let generation = 9_999;
        assert_eq!(post.next(), Some(ToLauncher::Generation { generation }));
        let frames: Vec<_> = std::iter::from_fn(|| post.next()).collect();
        assert_eq!(frames.len(), FRAMES_MAX);
        let first = ToLauncher::Changed(0, String::new());
        assert_eq!(frames.first(), Some(&first));
    }
}
