//! Why a request is refused, as data: which setting, what refuses it, and why.
//!
//! A refusal becomes a line by a [`Speller`]: the library's own writes settings by the names of their
//! fields, a program's as its users write them.

use crate::error::setting::{Choice, Setting};
use crate::units;

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// A number is too small or too large.
    OutOfRange {
        /// Which.
        setting: Setting,
        /// What it was set to.
        value: u64,
        /// The least value.
        min: u64,
        /// The greatest value.
        max: u64,
    },
    /// A duration of zero.
    Zero {
        /// Which.
        setting: Setting,
    },
    /// A number is too small for another one.
    TooFew {
        /// Which.
        setting: Setting,
        /// What it was set to.
        value: u64,
        /// The setting that needs more of them.
        other: Setting,
        /// What that was set to.
        other_value: u64,
        /// The least value.
        needed: u64,
    },
    /// A size isn't a multiple of what the file asks for.
    Misaligned {
        /// Which.
        setting: Setting,
        /// What it must be a multiple of.
        align: u64,
        /// The setting under which it must.
        other: Setting,
    },
    /// Two settings ask for opposite things.
    Contradiction {
        /// One of them.
        choice: Choice,
        /// What it asks for.
        asks: &'static str,
        /// The other.
        other: Choice,
        /// What that one does.
        but: &'static str,
    },
    /// Only another engine has it.
    NeedsEngine {
        /// What was asked for.
        choice: Choice,
        /// The name of the engine that was asked for.
        engine: &'static str,
        /// The name of one that has it.
        needs: &'static str,
    },
    /// It means nothing without another setting.
    NeedsSetting {
        /// What was asked for.
        setting: Setting,
        /// What has to be set too.
        other: Setting,
        /// Why.
        why: &'static str,
    },
    /// It is about files with a size, and the input is a pipe or another stream.
    NotAFile {
        /// What was asked for.
        setting: Setting,
    },
    /// Something outside the program doesn't grant it.
    NotGranted {
        /// What was asked for.
        choice: Choice,
        /// What refuses it.
        by: Refuser,
        /// Why.
        why: String,
    },
    /// It needs something that isn't available.
    Missing {
        /// What was asked for.
        setting: Setting,
        /// Why that isn't available.
        what: Box<Refusal>,
    },
    /// A way to read isn't available.
    Unavailable {
        /// Which.
        what: Facility,
        /// What refuses it.
        by: Refuser,
        /// Why.
        why: String,
    },
    /// There is no memory for the buffers.
    NoMemory {
        /// How many buffers.
        buffers: usize,
        /// Bytes of each.
        bytes: usize,
    },
    /// Threads can't be started.
    NoThreads {
        /// [`Setting::Threads`], or [`Setting::Rings`] for the threads of rings.
        setting: Setting,
        /// How many were wanted.
        threads: usize,
    },
    /// A record is longer than [`Config::max_record`](crate::Config::max_record).
    Exceeded {
        /// The limit in bytes.
        max_record: usize,
        /// It has a run of NUL bytes.
        has_nuls: bool,
    },
    /// The input isn't lines of text.
    NotText {
        /// Why.
        why: String,
        /// What it may be instead.
        what: Foreign,
    },
    /// What compressed data makes its decoder keep is more than decoders may have.
    DecoderMemory {
        /// The bytes that are needed.
        needed: u64,
        /// The bytes that all decoders may have.
        limit: u64,
    },
}

/// What refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Refuser {
    /// The kernel: it is too old, or built without it.
    Kernel,
    /// The file's file system.
    FileSystem,
    /// The file's device.
    Device,
    /// The machine has too little memory, or none of that kind.
    Memory,
    /// The machine has no such processor, or this process may not use it.
    Processor,
    /// The control group's limits.
    ControlGroup,
    /// A sysctl, a security policy or a container.
    Administrator,
    /// The limit on open files.
    DescriptorLimit,
    /// The limit on locked memory.
    LockedMemoryLimit,
    /// The limit on processes and threads.
    ProcessLimit,
}

/// A way to read that may not be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Facility {
    /// io_uring.
    Ring,
    /// Reads past the page cache (O_DIRECT).
    DirectReads,
    /// Mappings of files in the page cache.
    Mapping,
}

/// What an input is that isn't lines of text, and what makes text of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Foreign {
    /// Another kind of file, which a program makes text of.
    Encoded {
        /// As `a gzip file`.
        kind: &'static str,
        /// The program and its arguments.
        program: &'static str,
    },
    /// What another program makes of the file comes through a pipe.
    Piped {
        /// As `a tar archive`.
        kind: &'static str,
        /// The program and its arguments before the file.
        program: &'static str,
    },
    /// Bytes of zero that stand before the text, as where a log was cut while a program went on writing to it.
    Nuls,
    /// Many bytes of zero in a record: they can be taken out before, or the record left out.
    NulRun,
    /// Lines that end with a carriage return alone.
    CarriageReturns,
}

impl Foreign {
    /// Beside the words of an error: how such an input is recognised.
    fn fact(self, why: &str) -> String {
        match self {
            Foreign::Encoded { kind, .. } | Foreign::Piped { kind, .. } => {
                format!("{why}: this is how {kind} begins")
            }
            Foreign::Nuls => format!("{why}: it begins with NUL bytes"),
            Foreign::CarriageReturns => {
                format!("{why}: the lines end with a carriage return alone")
            }
            Foreign::NulRun => why.into(),
        }
    }
}

/// Writes settings and advice as the users of a program know them.
pub trait Speller {
    /// A setting, with its value if it has one.
    fn choice(&self, choice: &Choice) -> String;

    /// What the user can do about a refusal, if there is something.
    fn advice(&self, refusal: &Refusal) -> Option<String> {
        let _ = refusal;
        None
    }

    /// A job's own error: its words, unless the program knows the job.
    fn job(&self, error: &(dyn std::error::Error + 'static)) -> String {
        error.to_string()
    }
}

/// By the names of fields, without advice.
pub struct Fields;

impl Speller for Fields {
    fn choice(&self, choice: &Choice) -> String {
        choice.to_string()
    }
}

impl Refusal {
    /// What was asked for isn't granted.
    pub(crate) fn not_granted(
        choice: impl Into<Choice>,
        by: Refuser,
        why: impl Into<String>,
    ) -> Refusal {
        let (choice, why) = (choice.into(), why.into());
        Refusal::NotGranted { choice, by, why }
    }

    /// A way to read isn't available.
    pub(crate) fn unavailable(what: Facility, by: Refuser, why: impl Into<String>) -> Refusal {
        let why = why.into();
        Refusal::Unavailable { what, by, why }
    }

    /// The setting that is refused, where one is.
    pub fn setting(&self) -> Option<Setting> {
        match self {
            Refusal::OutOfRange { setting, .. }
            | Refusal::Zero { setting }
            | Refusal::TooFew { setting, .. }
            | Refusal::Misaligned { setting, .. }
            | Refusal::NeedsSetting { setting, .. }
            | Refusal::NotAFile { setting }
            | Refusal::Missing { setting, .. }
            | Refusal::NoThreads { setting, .. } => Some(*setting),
            Refusal::Contradiction { choice, .. }
            | Refusal::NeedsEngine { choice, .. }
            | Refusal::NotGranted { choice, .. } => Some(choice.setting),
            Refusal::Exceeded { .. } => Some(Setting::MaxRecord),
            Refusal::DecoderMemory { .. } => Some(Setting::DecoderMemory),
            Refusal::Unavailable { .. } | Refusal::NoMemory { .. } | Refusal::NotText { .. } => {
                None
            }
        }
    }

    /// The refusal in words, with the speller's advice.
    pub(crate) fn spelled(&self, speller: &dyn Speller) -> String {
        let fact = self.fact(speller);
        match speller.advice(self) {
            Some(advice) => format!("{fact}: {advice}"),
            None => fact,
        }
    }

    fn fact(&self, speller: &dyn Speller) -> String {
        let spell = |choice: &Choice| speller.choice(choice);
        let name = |setting: Setting| speller.choice(&setting.into());
        // Beside the kernel's own name, where it has one.
        let named = |choice: &Choice| match choice.setting {
            Setting::Direct => format!("O_DIRECT ({})", spell(choice)),
            Setting::Dontcache => format!("RWF_DONTCACHE ({})", spell(choice)),
            _ => spell(choice),
        };
        match self {
            Refusal::OutOfRange {
                setting,
                value,
                min,
                max,
            } => format!("{} {value} is out of range: {min} to {max}", name(*setting)),
            Refusal::Zero { setting } => {
                let setting = name(*setting);
                format!("{setting} 0 is out of range: it must be more than 0")
            }
            Refusal::TooFew {
                setting,
                value,
                other,
                other_value,
                needed,
            } => {
                let why = match setting {
                    Setting::Buffers => "a block waits for its neighbour",
                    _ => "a read in flight takes one",
                };
                let (setting, other) = (name(*setting), name(*other));
                format!(
                    "{setting} {value} is too few for {other} {other_value}: {why}, so at least \
                     {needed} are needed"
                )
            }
            Refusal::Misaligned {
                setting,
                align,
                other,
            } => {
                let (setting, other) = (name(*setting), name(*other));
                format!("{setting} must be a multiple of {align} with {other} on this file")
            }
            Refusal::Contradiction {
                choice,
                asks,
                other,
                but,
            } => format!("{} {asks}, {} {but}", spell(choice), spell(other)),
            Refusal::NeedsEngine {
                choice,
                engine,
                needs,
            } => {
                let choice = spell(choice);
                let [engine, needs] = [engine, needs].map(|name| spell(&Setting::Engine.of(name)));
                format!("{choice} isn't available with {engine}: it needs {needs}")
            }
            Refusal::NeedsSetting {
                setting,
                other,
                why,
            } => format!("{} {why}: it needs {}", name(*setting), name(*other)),
            Refusal::NotAFile { setting } => {
                let setting = named(&(*setting).into());
                format!("{setting} needs a file with a size, not a pipe or device")
            }
            Refusal::NotGranted { choice, why, .. } => format!("{}: {why}", named(choice)),
            Refusal::Missing { setting, what } => {
                format!("{}: {}", name(*setting), what.spelled(speller))
            }
            Refusal::Unavailable { what, why, .. } => match what {
                Facility::Ring => format!("no io_uring: {why}"),
                Facility::DirectReads | Facility::Mapping => why.clone(),
            },
            Refusal::NoMemory { buffers, bytes } => {
                format!("no memory for {buffers} buffers of {bytes} bytes")
            }
            Refusal::NoThreads { setting, threads } => match setting {
                Setting::Rings => format!("can't start a thread for each of {threads} rings"),
                _ => format!("can't start {threads} threads"),
            },
            Refusal::Exceeded { max_record, .. } => {
                format!("a record of more than {max_record} bytes")
            }
            Refusal::NotText { why, what } => what.fact(why),
            Refusal::DecoderMemory { needed, limit } => format!(
                "decompression needs {} of memory, and may have {} ({})",
                units::size(*needed),
                units::size(*limit),
                name(Setting::DecoderMemory)
            ),
        }
    }
}
