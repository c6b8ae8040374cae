//! A ring that reads compressed files ahead for the threads that decode them. It knows no format.
//!
//! Decoders ask for blocks over a channel, and each block comes back over a channel of its own. What can't be read, or has
//! no slot, is answered by nothing: then the decoder reads these bytes itself. So the ring is never needed for an answer.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::engine::arena::{ReturnedSlots, Slot};
use crate::engine::ring::seam::{Completion, Ring, Submission};
use crate::input::ahead::{AheadEngine, Arrived};
use crate::input::caching::Caching;
use crate::input::source::Source;
use crate::record::stitch::Piece;

/// How long reads that nobody waits for any more may take at the end.
const AT_THE_END: Duration = Duration::from_secs(1);

/// What the ring's thread is asked for.
enum Message {
    Read(Request),
    End,
}

struct Request {
    source: Arc<Source>,
    offset: u64,
    len: usize,
    reply: SyncSender<Option<Arrived>>,
}

/// Where requests go.
#[derive(Clone)]
pub(crate) struct Requests(UnboundedSender<Message>);

/// Where requests arrive.
pub(crate) struct Arrivals(UnboundedReceiver<Message>);

/// The two ends of a new channel.
pub(crate) fn requests() -> (Requests, Arrivals) {
    let (send, receive) = unbounded_channel();
    (Requests(send), Arrivals(receive))
}

impl Requests {
    /// What reads `source` ahead in blocks of `block` bytes. At most `capacity` of them are buffered or under way.
    pub(crate) fn of(
        &self,
        source: &Arc<Source>,
        block: usize,
        capacity: usize,
    ) -> Box<dyn AheadEngine> {
        Box::new(Ahead {
            requests: self.clone(),
            source: Arc::clone(source),
            block,
            capacity,
        })
    }

    /// Ends the ring's thread when it is dropped, by a panic too.
    pub(crate) fn closing(&self) -> Closing {
        Closing(self.0.clone())
    }
}

/// See [`Requests::closing`].
pub(crate) struct Closing(UnboundedSender<Message>);

impl Drop for Closing {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.send(Message::End);
    }
}

struct Ahead {
    requests: Requests,
    source: Arc<Source>,
    block: usize,
    capacity: usize,
}

impl fmt::Debug for Ahead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ahead").field(&self.source.name()).finish()
    }
}

impl AheadEngine for Ahead {
    fn block(&self) -> u64 {
        self.block as u64
    }

    fn capacity(&self) -> usize {
        self.capacity
    }

    fn begin(&self, from: u64) -> Option<Receiver<Option<Arrived>>> {
        if from >= self.source.len()? {
            return None;
        }
        let (reply, arrived) = sync_channel(1);
        let request = Request {
            source: Arc::clone(&self.source),
            offset: from,
            len: self.block,
            reply,
        };
        self.requests.0.send(Message::Read(request)).ok()?;
        Some(arrived)
    }
}

/// What a ring has read.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    pub(crate) reads: u64,
    pub(crate) bytes: u64,
}

/// Serves requests until the end is asked for, with reads that use the page cache in this way.
pub(crate) async fn run(
    ring: &mut impl Ring,
    mut arrivals: Arrivals,
    slots: Vec<Slot>,
    mut returned: ReturnedSlots,
    caching: Caching,
) -> Totals {
    let mut free = slots;
    let mut replies: Vec<Option<SyncSender<Option<Arrived>>>> = Vec::new();
    replies.resize_with(free.len(), || None);
    // By the source's number.
    let mut readable = HashMap::new();
    let (mut in_flight, mut totals) = (0, Totals::default());
    loop {
        let message = tokio::select! {
            message = arrivals.0.recv() => message,
            completion = ring.completion(), if in_flight > 0 => {
                in_flight -= 1;
                let reply = replies[completion.submission.slot.index() as usize].take();
                let arrived = arrived(completion);
                if let Some(arrived) = &arrived {
                    totals.reads += 1;
                    totals.bytes += (**arrived).as_ref().len() as u64;
                }
                if let Some(reply) = reply {
                    // Where nobody waits any more the slot returns.
                    let _ = reply.send(arrived);
                }
                continue;
            }
        };
        let Some(Message::Read(request)) = message else {
            break;
        };
        let slot = free.pop().or_else(|| returned.try_arrival());
        let can = readable.entry(request.source.index());
        let can = *can.or_insert_with(|| is_readable(&request, caching));
        let (Some(slot), true) = (slot, can) else {
            let _ = request.reply.send(None);
            continue;
        };
        replies[slot.index() as usize] = Some(request.reply);
        in_flight += 1;
        let Request {
            source,
            offset,
            len,
            ..
        } = request;
        ring.submit(Submission::new(source, offset, len, slot, caching));
    }
    let rest = async {
        while in_flight > 0 {
            drop(ring.completion().await);
            in_flight -= 1;
        }
    };
    // Without an answer from the device they are left to the driver.
    let _ = tokio::time::timeout(AT_THE_END, rest).await;
    totals
}

/// Whether blocks of a source can be read in this way. Past the page cache it is opened once more.
fn is_readable(request: &Request, caching: Caching) -> bool {
    if caching != Caching::Direct {
        return true;
    }
    request.source.takes_direct(request.len as u64)
}

/// The bytes of a read that has brought all that there are.
fn arrived(completion: Completion) -> Option<Arrived> {
    let Submission {
        source,
        offset,
        len,
        mut slot,
        ..
    } = completion.submission;
    let wanted = source.len()?.checked_sub(offset)?.min(len as u64) as usize;
    if completion.result.ok()? < wanted {
        return None;
    }
    slot.set_filled(0, wanted);
    Some(Arc::new(Bytes(slot)))
}

struct Bytes(Slot);

impl AsRef<[u8]> for Bytes {
    fn as_ref(&self) -> &[u8] {
        self.0.bytes()
    }
}
