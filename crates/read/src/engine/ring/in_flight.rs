//! The operations of a ring that are in flight, by slot: which of them are complete is known without a look at the
//! others, and nothing is allocated for a read.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use crate::sync::lock;

/// Futures in numbered places, each of which has a waker that is made once.
pub(crate) struct InFlight<F: Future> {
    places: Vec<Place<F>>,
    count: usize,
    woken: Arc<Woken>,
}

struct Place<F: Future> {
    future: Option<F>,
    waker: Waker,
}

/// Which places were woken, and who waits for that.
#[derive(Default)]
struct Woken(Mutex<(VecDeque<usize>, Option<Waker>)>);

/// The waker of a place.
struct PlaceWaker {
    place: usize,
    woken: Arc<Woken>,
}

impl Wake for PlaceWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let mut woken = lock(&self.woken.0);
        woken.0.push_back(self.place);
        let waits = woken.1.take();
        drop(woken);
        if let Some(waits) = waits {
            waits.wake();
        }
    }
}

impl<F: Future + Unpin> InFlight<F> {
    /// So many empty places.
    pub(crate) fn new(places: usize) -> Self {
        let woken = Arc::<Woken>::default();
        lock(&woken.0).0.reserve(places);
        let place = |place| Place {
            future: None,
            waker: Waker::from(Arc::new(PlaceWaker {
                place,
                woken: Arc::clone(&woken),
            })),
        };
        InFlight {
            places: (0..places).map(place).collect(),
            count: 0,
            woken,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Puts a future into an empty place. It is polled when its completion is asked for.
    pub(crate) fn insert(&mut self, place: usize, future: F) {
        let here = &mut self.places[place];
        assert!(here.future.is_none(), "a slot has one operation at a time");
        here.future = Some(future);
        self.count += 1;
        here.waker.wake_by_ref();
    }

    /// The next output; without any future, never.
    pub(crate) async fn next(&mut self) -> F::Output {
        std::future::poll_fn(|context| self.poll_next(Some(context))).await
    }

    /// An output that is there already.
    pub(crate) fn try_next(&mut self) -> Option<F::Output> {
        match self.poll_next(None) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        }
    }

    fn poll_next(&mut self, context: Option<&mut Context<'_>>) -> Poll<F::Output> {
        loop {
            let mut woken = lock(&self.woken.0);
            let Some(place) = woken.0.pop_front() else {
                woken.1 = context.map(|context| context.waker().clone());
                return Poll::Pending;
            };
            drop(woken);
            let Place { future, waker } = &mut self.places[place];
            // A place may be woken more than once.
            let Some(here) = future else { continue };
            if let Poll::Ready(output) = Pin::new(here).poll(&mut Context::from_waker(waker)) {
                *future = None;
                self.count -= 1;
                return Poll::Ready(output);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{Ready, ready};
    use tokio::sync::oneshot::{Receiver, channel};

    #[tokio::test]
    async fn outputs_come_in_the_order_of_their_wakes() {
        let mut in_flight: InFlight<Receiver<usize>> = InFlight::new(4);
        for _ in 0..3 {
            assert!(in_flight.is_empty());
            let mut senders = Vec::new();
            for place in 0..4 {
                let (sender, receiver) = channel();
                in_flight.insert(place, receiver);
                senders.push(Some(sender));
            }
            assert!(in_flight.try_next().is_none());
            for place in [2, 0, 3, 1] {
                let sender = senders[place].take().unwrap();
                let sent = tokio::spawn(async move { sender.send(place) });
                assert_eq!(in_flight.next().await, Ok(place));
                sent.await.unwrap().unwrap();
            }
        }
    }

    #[test]
    fn what_is_there_at_once_needs_no_wake() {
        let mut in_flight: InFlight<Ready<u8>> = InFlight::new(2);
        in_flight.insert(1, ready(7));
        assert!(!in_flight.is_empty());
        assert_eq!(in_flight.try_next(), Some(7));
        assert_eq!(in_flight.try_next(), None);
        assert!(in_flight.is_empty());
    }
}
