//! Files of `key;value`: what `ringfold generate` writes, and the same with each line changed.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Changes a line of `key;value` that ends with one decimal and has this number.
type Edit = fn(&mut Vec<u8>, u64);

/// Their names, numbers of keys, and how their lines differ from what `ringfold generate` writes.
const FILES: [(&str, Option<&str>, Option<Edit>); 10] = [
    ("413-keys.txt", None, None),
    ("10000-keys.txt", Some("10000"), None),
    ("prefix.txt", None, Some(prefix)),
    ("1000000-keys.txt", Some("1000000"), None),
    ("200000-cents.txt", Some("200000"), Some(cents)),
    ("200000-integers.txt", Some("200000"), Some(integers)),
    ("413-cents.txt", None, Some(cents)),
    ("413-integers.txt", None, Some(integers)),
    ("413-fifteen.txt", None, Some(fifteen)),
    ("413-nineteen.txt", None, Some(nineteen)),
];

fn prefix(line: &mut Vec<u8>, _: u64) {
    let key = b"a prefix that all keys have in common, ";
    line.splice(..0, key.iter().copied());
}

fn cents(line: &mut Vec<u8>, number: u64) {
    line.push(b'0' + (number % 10) as u8);
}

fn integers(line: &mut Vec<u8>, _: u64) {
    line.truncate(line.len() - 2);
}

fn fifteen(line: &mut Vec<u8>, number: u64) {
    line.extend(format!("{:014}", mixed(number) % 10_u64.pow(14)).bytes());
}

fn nineteen(line: &mut Vec<u8>, number: u64) {
    integers(line, number);
    line.extend(format!("{:017}", mixed(number) % 10_u64.pow(17)).bytes());
}

fn mixed(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The file of this name, of so many bytes before its lines are changed, made by `program` where it is missing.
pub fn file(name: &str, bytes: u64, folder: &Path, program: &str) -> io::Result<PathBuf> {
    let path = folder.join(format!("{}MiB-{name}", bytes >> 20));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let (generated, part) = (path.with_extension("all"), path.with_extension("part"));
    let known = FILES.iter().find(|file| file.0 == name);
    let &(_, keys, edit) = known.ok_or_else(|| io::Error::other("no such file"))?;
    let mut generate = Command::new(program);
    let bytes = bytes.to_string();
    generate.args(["generate", "--quiet", "--bytes", &bytes, "--output"]);
    generate.arg(&generated);
    generate.args(keys.iter().flat_map(|keys| ["--keys", *keys]));
    let status = generate.status()?;
    if !status.success() {
        return Err(io::Error::other(format!("{generate:?}: {status}")));
    }
    let Some(edit) = edit else {
        fs::rename(generated, &path)?;
        return Ok(path);
    };
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
    let lines = BufReader::with_capacity(1 << 20, File::open(&generated)?).split(b'\n');
    for (number, line) in (0..).zip(lines) {
        let mut line = line?;
        edit(&mut line, number);
        line.push(b'\n');
        out.write_all(&line)?;
    }
    out.into_inner()?.sync_all()?;
    fs::remove_file(generated)?;
    fs::rename(part, &path)?;
    Ok(path)
}
