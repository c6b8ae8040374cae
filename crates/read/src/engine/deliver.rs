//! What happens to a block once it is fetched: the queue, the limits, the sink, the lowest failure.

pub(crate) mod delivery;
pub(crate) mod queue;
pub(crate) mod states;
pub(crate) mod stream_lines;
pub(crate) mod watch;
