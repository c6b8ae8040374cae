//! The settings of a run, by name: what a refusal is about.

use std::fmt;

macro_rules! settings {
    ($($(#[$is:meta])* $setting:ident = $name:literal,)*) => {
        /// Something that a program can set, by the name of its field or method.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Setting {
            $($(#[$is])* $setting,)*
            /// A setting of a job, by its name.
            Job(&'static str),
        }

        impl Setting {
            /// All that aren't a job's.
            pub const ALL: &[Setting] = &[$(Setting::$setting),*];

            /// The name of its field or method.
            pub fn name(self) -> &'static str {
                match self {
                    $(Setting::$setting => $name,)*
                    Setting::Job(name) => name,
                }
            }
        }
    };
}

settings! {
    /// [`Config::engine`](crate::Config::engine).
    Engine = "engine",
    /// [`Config::direct`](crate::Config::direct).
    Direct = "direct",
    /// [`Config::block_size`](crate::Config::block_size).
    BlockSize = "block_size",
    /// [`Config::queue_depth`](crate::Config::queue_depth).
    QueueDepth = "queue_depth",
    /// [`Config::buffers`](crate::Config::buffers).
    Buffers = "buffers",
    /// [`Config::threads`](crate::Config::threads).
    Threads = "threads",
    /// [`Knobs::cache`](crate::Knobs::cache).
    Cache = "knobs.cache",
    /// [`Config::max_record`](crate::Config::max_record).
    MaxRecord = "max_record",
    /// [`Config::io_timeout`](crate::Config::io_timeout).
    IoTimeout = "io_timeout",
    /// [`Knobs::dontcache`](crate::Knobs::dontcache).
    Dontcache = "dontcache",
    /// [`Knobs::huge_pages`](crate::Knobs::huge_pages).
    HugePages = "huge_pages",
    /// [`Knobs::registered_buffers`](crate::Knobs::registered_buffers).
    RegisteredBuffers = "registered_buffers",
    /// [`Knobs::registered_files`](crate::Knobs::registered_files).
    RegisteredFiles = "registered_files",
    /// [`Knobs::sqpoll`](crate::Knobs::sqpoll).
    Sqpoll = "sqpoll",
    /// [`Knobs::punt`](crate::Knobs::punt).
    Punt = "punt",
    /// [`Knobs::task_run`](crate::Knobs::task_run).
    TaskRun = "task_run",
    /// [`Knobs::entries`](crate::Knobs::entries).
    Entries = "entries",
    /// [`Knobs::iopoll`](crate::Knobs::iopoll).
    Iopoll = "iopoll",
    /// [`Knobs::rings`](crate::Knobs::rings).
    Rings = "rings",
    /// [`Knobs::pin`](crate::Knobs::pin).
    Pin = "pin",
    /// [`Knobs::fadvise`](crate::Knobs::fadvise).
    Fadvise = "fadvise",
    /// [`Knobs::readahead`](crate::Knobs::readahead).
    Readahead = "readahead",
    /// [`Knobs::populate`](crate::Knobs::populate).
    Populate = "populate",
    /// [`Knobs::map_advice`](crate::Knobs::map_advice).
    MapAdvice = "map_advice",
    /// [`Input::decoder_memory`](crate::Input::decoder_memory).
    DecoderMemory = "decoder_memory",
}

impl Setting {
    /// The setting with a value.
    pub fn of(self, value: impl fmt::Display) -> Choice {
        Choice {
            setting: self,
            value: Some(value.to_string()),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(feature = "serde")]
impl serde::Serialize for Setting {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A setting, with its value where one is meant: `direct`, `task_run defer`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Choice {
    /// Which setting.
    pub setting: Setting,
    /// Which value of it.
    pub value: Option<String>,
}

impl From<Setting> for Choice {
    fn from(setting: Setting) -> Choice {
        Choice {
            setting,
            value: None,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Some(value) => write!(f, "{} {value}", self.setting),
            None => write!(f, "{}", self.setting),
        }
    }
}
