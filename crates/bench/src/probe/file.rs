//! A file: what it is, how it can be read, and which part of it is cached.

use std::fs::{File, Metadata};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use ringfold_read::internals::{
    Arena, Layout,
    calls::cachestat,
    mounts::{self, Mount},
    pages::{HUGE_PAGE, PAGE},
    residency::{self, pages_of},
    sizing::{DEPTH, MemoryLimit},
    units::size,
    visible,
};
use ringfold_read::{Error, HugePages, Input, Result, Source};

use crate::probe::check::Check;
use crate::probe::device::Device;
use crate::probe::findings::{Section, Value};
use crate::probe::kernel::{dontcache, named};
use crate::probe::machine::Machine;
use crate::probe::pages;

/// How many pages of a file are sampled where cachestat is refused.
const SAMPLES: u64 = 32;
/// How many folios are sampled.
const FOLIOS: u64 = 16;

/// A file to be examined.
pub(crate) struct Subject {
    name: String,
    meta: Metadata,
    /// Open, if it can be read at any offset. A pipe isn't opened, because that would wake a process that waits
    /// to write into it. Neither is a device that isn't a block device.
    file: Option<File>,
    /// The same, as a run opens it.
    input: Option<Input>,
    mount: std::result::Result<Mount, String>,
}

/// What was found out about reading it.
struct Support {
    direct: bool,
    dontcache: bool,
}

impl Subject {
    /// # Errors
    /// The file can't be opened, or is a directory.
    pub(crate) fn open(index: u32, path: &Path) -> Result<Subject> {
        let name = path.to_string_lossy().into_owned();
        let refused = |error: io::Error| Error::io(&error).in_file(index, &name.as_str().into());
        let stdin = path.as_os_str() == "-";
        let meta = match stdin {
            true => {
                let again = io::stdin().as_fd().try_clone_to_owned();
                again.and_then(|fd| File::from(fd).metadata())
            }
            false => std::fs::metadata(path),
        };
        let meta = meta.map_err(refused)?;
        let kind = meta.file_type();
        if !kind.is_file() && !kind.is_block_device() && !kind.is_dir() {
            if kind.is_socket() && !stdin {
                return Err(refused(rustix::io::Errno::NXIO.into()));
            }
            if !stdin {
                use rustix::fs::{Access, AtFlags, CWD, accessat};
                accessat(CWD, path, Access::READ_OK, AtFlags::EACCESS)
                    .map_err(|errno| refused(errno.into()))?;
            }
            return Ok(Subject {
                mount: Err("it isn't opened".into()),
                name,
                meta,
                file: None,
                input: None,
            });
        }
        let input =
            Input::open([path]).map_err(|error| error.in_file(index, &name.as_str().into()))?;
        let file = input.sources()[0].file().map_err(refused)?;
        let file = file.try_clone().map_err(refused)?;
        Ok(Subject {
            mount: mounts::of_file(&file),
            name,
            meta,
            file: Some(file),
            input: Some(input),
        })
    }

    /// The device that its bytes lie on.
    pub(crate) fn device(&self) -> Device {
        if self.meta.file_type().is_block_device() {
            return Device::number(self.meta.rdev());
        }
        if self.file.is_none() {
            return Device::none("it isn't a file on a device");
        }
        match &self.mount {
            Ok(mount) => Device::of_mount(self.meta.dev(), mount),
            Err(_) => Device::number(self.meta.dev()),
        }
    }

    /// The section, and what to do with this file.
    pub(crate) fn look(&self, machine: &Machine) -> (Section, Vec<String>) {
        let name = visible(self.name.as_bytes());
        let mut section = Section::new("file", Some(name.to_string()));
        let source = self.source();
        let stream = source.is_none_or(|source| source.len().is_none());
        section.add(
            "kind",
            self.kind(),
            match stream {
                true => "a stream: it is read in order by read(), whatever the engine",
                false => "can be read at any offset: every engine works",
            },
        );
        let len = source.and_then(Source::len).ok_or("a stream has no size");
        section.fact("size", len.map(|len| (Value::Bytes(len), blocks(len))));
        let block_device = self.meta.file_type().is_block_device();
        if self.file.is_some() && !block_device {
            self.file_system(&mut section);
        }
        let Some(input) = self.input.as_ref().filter(|_| !stream) else {
            let plan = vec![
                format!("{name}: auto: streams are read by read()"),
                format!("try: ringfold count --stats {}", quoted(&self.name)),
            ];
            return (section, plan);
        };
        let source = &input.sources()[0];
        let file = &*source.file().expect("it isn't in memory and open");
        let support = Support {
            direct: direct(&mut section, source),
            dontcache: drops(&mut section, source, file),
        };
        section.check(match (support.direct, self.fs()) {
            (_, "tmpfs" | "ramfs") => Check::good(format!("{name} lies in memory")),
            (true, _) => Check::good(format!("{name} can be read past the page cache (O_DIRECT)")),
            (false, fs) => Check::fair(
                format!("{fs} refuses to read {name} past the page cache (O_DIRECT)"),
                "a cold file is read faster from ext4 or XFS",
            ),
        });
        self.resident(&mut section, source, file);
        self.folios(&mut section, source, file);
        self.read_ahead(&mut section);
        let plan = self.plan(input, machine, &support);
        (section, plan)
    }

    fn source(&self) -> Option<&Source> {
        Some(&self.input.as_ref()?.sources()[0])
    }

    fn kind(&self) -> &'static str {
        let kind = self.meta.file_type();
        let stream = self.source().is_some_and(|source| source.len().is_none());
        let kinds = [
            (kind.is_file() && stream, "unsized file"),
            (kind.is_file(), "regular file"),
            (kind.is_block_device(), "block device"),
            (kind.is_char_device(), "character device"),
            (kind.is_fifo(), "pipe"),
            (kind.is_socket(), "socket"),
        ];
        let found = kinds.into_iter().find(|(is_it, _)| *is_it);
        found.map_or("something else", |(_, name)| name)
    }

    fn file_system(&self, section: &mut Section) {
        let mount = match &self.mount {
            Ok(mount) => mount,
            Err(why) => {
                section.unknown("file system", why);
                section.unknown("mount options", why);
                return;
            }
        };
        section.add(
            "file system",
            mount.fs.as_str(),
            match mount.fs.as_str() {
                "tmpfs" | "ramfs" | "devtmpfs" => "in memory: nothing is ever read from a device",
                "overlay" => {
                    "a container's layers: the file lies in the file system of one of them"
                }
                "btrfs" => {
                    "reads past the page cache fall back to buffered where extents are compressed \
                        or hold checksums that such a read can't check"
                }
                "proc" | "sysfs" | "debugfs" | "tracefs" => {
                    "generated by the kernel when it is read"
                }
                name if name.starts_with("nfs") || name.starts_with("fuse") || name == "cifs" => {
                    "a server or a program answers the reads: its speed isn't a local drive's"
                }
                _ => "reads go to the device below, or to the page cache",
            },
        );
        let has = |name: &str| mount.options.iter().any(|option| option == name);
        let meaning = if has("dax") || has("dax=always") {
            "dax: there is no page cache; --engine mmap maps the device itself"
        } else if mount.options.iter().any(|o| o.starts_with("compress")) {
            "compressed: bytes of the file aren't bytes of the device"
        } else {
            "nothing in them changes how ringfold reads"
        };
        section.add("mount options", mount.options.join(","), meaning);
    }

    fn read_ahead(&self, section: &mut Section) {
        const NAME: &str = "read-ahead";
        match self.fs() {
            "tmpfs" | "ramfs" => return section.unknown(NAME, "in memory nothing is read ahead"),
            "overlay" => return section.unknown(NAME, "that of the layer's file system holds"),
            _ => {}
        }
        let dev = match self.meta.file_type().is_block_device() {
            true => self.meta.rdev(),
            false => self.meta.dev(),
        };
        const MEANING: &str = "of the file system: how far ahead buffered reads (read, pread, mmap) go; O_DIRECT has none";
        let ahead = self.device().read_ahead_kb(dev, self.fs());
        section.fact(NAME, ahead.map(|kib| (Value::Bytes(kib << 10), MEANING)));
    }

    /// How many of its bytes are cached.
    fn resident(&self, section: &mut Section, source: &Source, file: &File) {
        const NAME: &str = "resident";
        let len = source.len().unwrap_or(0);
        if len == 0 {
            return section.unknown(NAME, "it is empty");
        }
        let meaning = |share: f64| match share {
            0.0 => {
                "nothing is cached: a measurement now is that of the device (but see \"virtual\")"
            }
            100.0 => "all of it is cached: a measurement now is that of memory, not of the device",
            _ => "a part comes from memory: a measurement isn't the speed of the device",
        };
        match self.cached_pages(file, len) {
            Ok(pages) => {
                let all = pages_of(0, len);
                let share = 100.0 * pages as f64 / all as f64;
                let meaning = meaning(share);
                let text =
                    format!("{pages} of {all} pages in the page cache (cachestat): {meaning}");
                section.add(NAME, Value::Percent(share), text);
            }
            Err(error) => match sampled(file, len) {
                Some((seen, of)) => section.add(
                    NAME,
                    Value::Percent(100.0 * seen as f64 / of as f64),
                    format!("{seen} of {of} pages looked at are cached: a sample, as {error}"),
                ),
                None => section.unknown(NAME, error),
            },
        }
    }

    /// The folios in which the page cache holds it, by samples of cached pages.
    fn folios(&self, section: &mut Section, source: &Source, file: &File) {
        const NAME: &str = "large folios";
        let len = source.len().unwrap_or(0);
        let cached = |&at: &u64| {
            cachestat(file, at, (at + PAGE as u64).min(len)).is_ok_and(|pages| pages == 1)
        };
        if let Err(error) = self.cached_pages(file, len) {
            return section.unknown(NAME, error);
        }
        let places: Vec<u64> = places(len, FOLIOS, 0).filter(cached).collect();
        if places.is_empty() {
            return section.unknown(NAME, "none of the pages looked at is cached");
        }
        let pages: io::Result<Vec<_>> = places.iter().map(|&at| pages::mapping(file, at)).collect();
        let pages = match pages {
            Ok(pages) => pages,
            Err(error) => {
                return section.unknown(NAME, format!("a mapping of it: {}", named(&error)));
            }
        };
        let of = pages.len();
        let whole = pages.iter().filter(|page| page.by_one_entry).count();
        let sizes: Vec<u64> = pages.iter().filter_map(|page| page.folio_bytes).collect();
        let follows = match whole {
            0 => "mmap pays a fault for a few pages each, pread may be cheaper; auto tries both",
            _ => "mmap costs next to nothing where 2 MiB are one entry of the page table",
        };
        let fact = if sizes.len() == of {
            let large = sizes.iter().filter(|&&bytes| bytes > PAGE as u64).count();
            let largest = sizes.iter().max().copied().unwrap_or(0);
            let meaning = format!(
                "the largest of {of} cached pages looked at, {large} of which lie in folios of more than a page: {follows}"
            );
            Ok((Value::Bytes(largest), meaning))
        } else if whole > 0 {
            let meaning =
                format!("{whole} of {of} cached pages looked at are mapped so: {follows}");
            Ok((Value::Bytes(HUGE_PAGE as u64), meaning))
        } else {
            Err(format!(
                "none of {of} cached pages looked at is mapped by 2 MiB, smaller folios are shown to root only: {follows}"
            ))
        };
        section.fact(NAME, fact);
    }

    /// How many of its pages are cached, if cachestat isn't refused.
    fn cached_pages(&self, file: &File, len: u64) -> std::result::Result<u64, String> {
        if self.fs() == "overlay" {
            return Err("an overlay's pages are cached as those of its layers".into());
        }
        cachestat(file, 0, len).map_err(|error| format!("cachestat: {}", named(&error)))
    }

    /// The name of its file system, where that is known.
    fn fs(&self) -> &str {
        self.mount.as_ref().map_or("", |mount| &mount.fs)
    }

    /// What `auto` would do, and a command to try.
    fn plan(&self, input: &Input, machine: &Machine, support: &Support) -> Vec<String> {
        let spans = input.spans();
        let small = residency::is_small(spans);
        let (mut auto, cached) = if small {
            (residency::SMALL_WORDS.to_string(), true)
        } else if source_tells(input) {
            let split = residency::split(input, spans);
            let memory = MemoryLimit::of_this_process();
            let fits = residency::fits(&memory, residency::bytes(spans));
            match fits && !split.cold.is_empty() {
                true => (residency::CACHING_WORDS.to_string(), true),
                false => (split.words(), split.cold.is_empty()),
            }
        } else {
            let words = "samples show which part is cached, and the rest is read";
            (words.to_string(), false)
        };
        if !cached {
            auto += match (machine.auto_rings(), support.direct) {
                (true, true) => ", past the page cache (O_DIRECT)",
                (true, false) => ", through the page cache, because O_DIRECT is refused",
                (false, _) => "; pread, because there is no io_uring",
            };
        }
        let direct = format!("--engine uring --direct --queue-depth {DEPTH}");
        let flags = match (&machine.ring, support.direct, support.dontcache) {
            (Ok(()), true, _) => &*direct,
            (Ok(()), false, true) => "--engine uring --dontcache",
            (Ok(()), false, false) => "--engine uring",
            (Err(_), true, _) => "--engine pread --direct",
            (Err(_), false, _) => "--engine pread",
        };
        let name = quoted(&self.name);
        let mut plan = vec![format!("{}: auto: {auto}", visible(self.name.as_bytes()))];
        if cached {
            plan.push(format!("try: ringfold count --stats {name}"));
        }
        let in_memory = matches!(self.fs(), "tmpfs" | "ramfs");
        if !cached || (support.direct && !in_memory && !small) {
            plan.push(format!("try: ringfold count {flags} --stats {name}"));
        }
        plan
    }
}

/// Whether `auto` can use cachestat and needn't take samples.
fn source_tells(input: &Input) -> bool {
    let file = input.sources()[0].file();
    file.is_ok_and(|file| cachestat(&file, 0, PAGE as u64).is_ok())
}

fn blocks(len: u64) -> String {
    let block = crate::probe::machine::default_block();
    match len {
        0 => "empty: there is nothing to read".into(),
        _ if len < block => format!("{len} bytes: less than one block of {}", size(block)),
        _ => {
            let blocks = len.div_ceil(block);
            format!("{len} bytes: {blocks} blocks of {}", size(block))
        }
    }
}

/// Reads a block past the page cache; returns whether that works.
fn direct(section: &mut Section, source: &Source) -> bool {
    let align = source.direct_align();
    let tried = try_direct(source, align as usize);
    let tried = tried.map(|bytes| match bytes {
        0 => "tried: it can be opened so; there is nothing to read".into(),
        n => format!(
            "tried: an aligned read brought {n} bytes; --direct is available, and auto uses it"
        ),
    });
    let tried = tried
        .map_err(|why| format!("{why}: --direct is an error, auto reads through the page cache"));
    let works = section.works("O_DIRECT", tried);
    let meaning =
        "offsets, lengths and buffers past the page cache are multiples of it, so is --block-size";
    let alignment = match (source.direct_align_is_known(), works) {
        (true, _) => Ok("by statx"),
        (false, true) => Ok("assumed, as statx says nothing, and the read above worked"),
        (false, false) => Err("statx says nothing, and O_DIRECT is refused"),
    };
    let alignment = alignment.map(|by| (Value::Bytes(align), format!("{by}: {meaning}")));
    section.fact("alignment", alignment);
    works
}

fn try_direct(source: &Source, align: usize) -> std::result::Result<usize, String> {
    let file = source.direct().map_err(|error| {
        let text = error.to_string();
        // The section has the name already.
        let name = format!("{}: ", source.name());
        text.strip_prefix(&name).unwrap_or(&text).to_string()
    })?;
    let len = align.max(PAGE);
    // A slot begins at a page; some devices want more.
    let layout = Layout {
        block: 2 * len,
        slots: 1,
    };
    let arena = Arena::new(layout, HugePages::Off).map_err(|error| error.to_string())?;
    let (mut slots, _home) = arena.slots();
    let target = slots[0].target_bytes(0);
    let skip = target.as_ptr().align_offset(len);
    rustix::io::pread(file, &mut target[skip..skip + len], 0)
        .map_err(|errno| format!("a read of {len} bytes: {}", named(&errno.into())))
}

/// Whether the file takes RWF_DONTCACHE.
fn drops(section: &mut Section, source: &Source, file: &File) -> bool {
    let tried = dontcache(file, source.len().unwrap_or(0));
    let tried = tried
        .map(|()| "accepted: --dontcache reads through the page cache and leaves nothing in it")
        .map_err(|error| format!("--dontcache is an error here: {}", named(&error)));
    section.works("DONTCACHE", tried)
}

/// How many of some pages are cached, by reads that may not wait. Such a read may start reading a page that
/// isn't cached, so that each call samples other pages.
fn sampled(file: &File, len: u64) -> Option<(u64, u64)> {
    let again = residency::opened_to_sample(file)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let shift = u64::from(now.unwrap_or_default().subsec_nanos());
    let (mut cached, mut all) = (0, 0);
    for at in places(len, SAMPLES, shift) {
        cached += u64::from(residency::is_cached(&again, at)?);
        all += 1;
    }
    Some((cached, all))
}

/// The offsets of pages, one in each of `most` equal parts of a file, moved by a `shift`.
fn places(len: u64, most: u64, shift: u64) -> impl Iterator<Item = u64> {
    let page = PAGE as u64;
    let pages = len.div_ceil(page);
    let parts = most.min(pages);
    (0..parts).map(move |part| {
        let of = |part: u64| (u128::from(pages) * u128::from(part) / u128::from(parts)) as u64;
        let (from, to) = (of(part), of(part + 1));
        (from + shift % (to - from).max(1)) * page
    })
}

/// A name as a shell takes it; one with control characters as bash does.
pub fn quoted(name: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "/._-+=:@%,".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        return name.to_string();
    }
    if !name.chars().any(char::is_control) {
        return format!("'{}'", name.replace('\'', r"'\''"));
    }
    let escaped = name.bytes().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", escaped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use crate::probe::file::*;

    #[test]
    fn places_lie_in_the_file_and_in_order() {
        for (pages, shift) in [(1, 0), (1, 99), (31, 7), (32, 5), (1000, 123_456_789)] {
            let found: Vec<u64> = places(pages * 4096, 32, shift).collect();
            assert_eq!(found.len() as u64, pages.min(32));
            assert!(found.is_sorted_by(|a, b| a < b));
            assert!(found.iter().all(|&at| at < pages * 4096));
        }
        assert_eq!(places(0, 32, 1).count(), 0);
        assert_eq!(places(1, 32, 1).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn names_for_a_shell() {
        assert_eq!(quoted("a/b.txt"), "a/b.txt");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("it's\n\\ü"), r"$'it\'s\x0a\\\xc3\xbc'");
    }
}
