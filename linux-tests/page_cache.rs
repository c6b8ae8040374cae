//! What `auto` leaves in the page cache.

use std::path::{Path, PathBuf};

use crate::compressed::gzip;
use crate::group::Group;
use crate::probe::{Feature, skips};
use crate::support::{STATIONS, cold, dir, end, ringfold};
use crate::sys;

/// The part of a file's pages that are cached.
fn cached(path: &Path) -> f64 {
    let pages = sys::residency(path);
    pages.iter().filter(|&&is_in| is_in).count() as f64 / pages.len() as f64
}

/// Cold files, a run over them, and what of them is cached then.
fn after(dir: &Path, texts: &[Vec<u8>], flags: &[&str]) -> Vec<f64> {
    let paths: Vec<PathBuf> = (texts.iter().enumerate())
        .map(|(n, text)| cold(dir, &format!("file-{n}"), text))
        .collect();
    let mut command = ringfold(["count", "--lines"]);
    end(command.args(flags).args(&paths)).answer();
    paths.iter().map(|path| cached(path)).collect()
}

/// The second run over what fits into memory finds it cached, unless that isn't wanted. Other programs may drop pages
/// in between.
#[test]
fn what_fits_stays_cached() {
    if skips(
        "what_fits_stays_cached",
        &[Feature::Eviction, Feature::IoUring],
    ) {
        return;
    }
    let dir = dir();
    let large = [STATIONS.repeat(48)];
    let small: Vec<Vec<u8>> = vec![STATIONS[..200_000].to_vec(); 100];
    // Larger than what is simply read, when compressed, too.
    let mut noise = 1_u64;
    let line = |_| {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        format!("{noise:016x}\n").into_bytes()
    };
    let noise: Vec<u8> = (0..1_200_000).flat_map(line).collect();
    let compressed = [gzip(&noise)];
    assert!(compressed[0].len() > 9 << 20);
    for texts in [&large[..], &small, &compressed] {
        for flags in [&[][..], &["--cache", "auto"], &["--cache", "keep"]] {
            let stays = || {
                after(dir.path(), texts, flags)
                    .iter()
                    .all(|&part| part > 0.9)
            };
            assert!((0..4).any(|_| stays()), "{flags:?}, {} files", texts.len());
        }
        for flags in [
            &["--cache", "none"][..],
            // Named for the ring.
            &["--queue-depth", "8"],
        ] {
            if texts == compressed {
                // What decoders look for, they read through the page cache.
                continue;
            }
            let parts = after(dir.path(), texts, flags);
            assert!(parts.iter().all(|&part| part < 0.5), "{flags:?}: {parts:?}");
        }
    }
}

/// In a control group the page cache is part of the group's memory.
#[test]
fn what_does_not_fit_does_not_stay() {
    let test = "what_does_not_fit_does_not_stay";
    if skips(
        test,
        &[Feature::Eviction, Feature::IoUring, Feature::MemoryGroup],
    ) {
        return;
    }
    let group = Group::new("memory", 64 << 20).unwrap();
    let dir = dir();
    let path = cold(dir.path(), "file", &STATIONS.repeat(80));
    let mut command = ringfold(["count", "--lines"]);
    group.take_in(command.arg(&path));
    end(&mut command).answer();
    assert!(cached(&path) < 0.5);
}
