//! The pages of one of our own mappings, by /proc/self/smaps.

use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// The sum of these fields for the mapping that `address` lies in, in bytes.
pub fn bytes(address: usize, fields: &[&str]) -> io::Result<u64> {
    let smaps = BufReader::new(File::open("/proc/self/smaps")?);
    let mut inside = false;
    let mut kib = 0;
    for line in smaps.lines() {
        let line = line?;
        let range = line
            .split(' ')
            .next()
            .and_then(|range| range.split_once('-'));
        let range = range.and_then(|(from, to)| {
            let hex = |text| usize::from_str_radix(text, 16).ok();
            Some(hex(from)?..hex(to)?)
        });
        if let Some(range) = range {
            if inside {
                // The kernel looks at all pages of each mapping that is read.
                break;
            }
            inside = range.contains(&address);
        } else if let Some((field, value)) = line.split_once(':').filter(|_| inside)
            && fields.contains(&field)
        {
            let value = value.trim().trim_end_matches(" kB");
            kib += value.parse::<u64>().unwrap_or(0);
        }
    }
    Ok(kib << 10)
}
