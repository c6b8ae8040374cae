//! The reader's modules, under the names that the modules above call them by.
#![allow(unused_imports)]

pub(crate) mod isa {
    pub(crate) use ringfold_read::internals::isa::Isa;
    pub(crate) use ringfold_read::internals::isa::Portable;
    pub(crate) use ringfold_read::internals::isa::dispatch;
    #[cfg(target_arch = "x86_64")]
    pub(crate) use ringfold_read::internals::isa::lanes;
    #[cfg(target_arch = "x86_64")]
    pub(crate) use ringfold_read::internals::isa::x86;
}
pub(crate) mod engine {
    pub(crate) mod config {
        pub(crate) use ringfold_read::Config;
        pub(crate) use ringfold_read::Engine;
        pub(crate) use ringfold_read::Overdue;
        pub(crate) use ringfold_read::RingDefaults;
    }
    pub(crate) mod knobs {
        pub(crate) use ringfold_read::CacheUse;
        pub(crate) use ringfold_read::FileAdvice;
        pub(crate) use ringfold_read::HugePages;
        pub(crate) use ringfold_read::Knobs;
        pub(crate) use ringfold_read::MapAdvice;
        pub(crate) use ringfold_read::TaskRun;
    }
    pub(crate) mod notice {
        pub(crate) use ringfold_read::Notice;
    }
    pub(crate) mod observer {
        pub(crate) use ringfold_read::Observer;
    }
    pub(crate) mod pool {
        pub(crate) use ringfold_read::pool;
    }
    pub(crate) mod run {
        pub(crate) use ringfold_read::internals::line_of;
        pub(crate) use ringfold_read::run;
    }
    pub(crate) mod sink {
        pub(crate) use ringfold_read::BlockError;
        pub(crate) use ringfold_read::Malformed;
        pub(crate) use ringfold_read::Ordered;
        pub(crate) use ringfold_read::Sink;
    }
    pub(crate) mod stats {
        pub(crate) use ringfold_read::Stats;
    }
    pub(crate) mod window {
        pub(crate) use ringfold_read::Finished;
    }
    pub(crate) mod arena {
        pub(crate) use ringfold_read::internals::Arena;
        pub(crate) use ringfold_read::internals::Layout;
        pub(crate) use ringfold_read::internals::Slot;
    }
    pub(crate) mod cache {
        pub(crate) use ringfold_read::internals::residency;
    }
    pub(crate) mod plan {
        pub(crate) use ringfold_read::internals::sizing;
    }
    pub(crate) mod ring {
        pub(crate) use ringfold_read::internals::uring;
    }
    pub(crate) mod lines {
        pub(crate) use ringfold_read::internals::lines_before as before;
    }
}
pub(crate) mod error {
    pub(crate) mod refusal {
        pub(crate) use ringfold_read::Facility;
        pub(crate) use ringfold_read::Fields;
        pub(crate) use ringfold_read::Foreign;
        pub(crate) use ringfold_read::Refusal;
        pub(crate) use ringfold_read::Refuser;
        pub(crate) use ringfold_read::Speller;
    }
    pub(crate) mod setting {
        pub(crate) use ringfold_read::Choice;
        pub(crate) use ringfold_read::Setting;
    }
    pub(crate) use ringfold_read::Cause;
    pub(crate) use ringfold_read::Error;
    pub(crate) use ringfold_read::Kind;
    pub(crate) use ringfold_read::Result;
    pub(crate) use ringfold_read::internals::OutOfMemory;
    pub(crate) use ringfold_read::internals::describe;
    pub(crate) use ringfold_read::internals::errno_name;
}
pub(crate) mod input {
    pub(crate) mod source {
        pub(crate) use ringfold_read::Source;
    }
    pub(crate) mod spans {
        pub(crate) use ringfold_read::Input;
        pub(crate) use ringfold_read::Span;
    }
    #[cfg(feature = "decompress")]
    pub(crate) mod decode {
        pub(crate) use ringfold_read::internals::reopened;
    }
    pub(crate) mod descriptors {
        pub(crate) use ringfold_read::internals::raise_descriptor_limit;
    }
    pub(crate) use ringfold_read::internals::foreign;
    pub(crate) use ringfold_read::internals::head;
}
pub(crate) mod linux {
    pub(crate) mod sigbus {
        pub(crate) use ringfold_read::decline_sigbus_handler;
    }
    pub(crate) use ringfold_read::internals::cgroups;
    pub(crate) use ringfold_read::internals::heap;
    pub(crate) use ringfold_read::internals::mounts;
    pub(crate) use ringfold_read::internals::pages;
    pub(crate) use ringfold_read::internals::proc;
    pub(crate) use ringfold_read::internals::smaps;
}
pub(crate) mod record {
    pub(crate) mod block {
        pub(crate) use ringfold_read::Block;
        pub(crate) use ringfold_read::PADDING;
        pub(crate) use ringfold_read::PaddedBuf;
        pub(crate) use ringfold_read::SharedPages;
        pub(crate) use ringfold_read::internals::Cut;
        pub(crate) use ringfold_read::internals::Padded;
    }
    pub(crate) mod framing {
        pub(crate) use ringfold_read::Delimited;
        pub(crate) use ringfold_read::Effect;
        pub(crate) use ringfold_read::Framing;
        pub(crate) use ringfold_read::STATES_MAX;
        pub(crate) use ringfold_read::State;
        pub(crate) use ringfold_read::internals::texts;
    }
    pub(crate) mod quoted {
        pub(crate) use ringfold_read::Quoted;
    }
    pub(crate) mod stitch {
        pub(crate) use ringfold_read::internals::Oversized;
        pub(crate) use ringfold_read::internals::Piece;
        pub(crate) use ringfold_read::internals::Release;
        pub(crate) use ringfold_read::internals::Stitcher;
    }
    pub(crate) use ringfold_read::internals::bytes;
    pub(crate) use ringfold_read::internals::lines;
    pub(crate) use ringfold_read::internals::nuls;
}
pub(crate) mod level {
    #[cfg(target_arch = "x86_64")]
    pub(crate) use ringfold_read::internals::Avx2;
    #[cfg(target_arch = "x86_64")]
    pub(crate) use ringfold_read::internals::Avx512;
    pub(crate) use ringfold_read::internals::Level;
}
pub(crate) mod visible {
    pub(crate) use ringfold_read::internals::visible;
}
pub(crate) use ringfold_read::internals::prefetch;
pub(crate) use ringfold_read::internals::units;
