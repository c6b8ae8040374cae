//! Compressed data as the formats' own programs accept it: what stands before, between and after members, older formats,
//! and limits. And what is no text, refused by its name.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::compressed::{bzip, gzip, lz4, zstandard};
use crate::support::{Ended, dir, end, end_of, feed, ringfold, start, write};

const TEXT: &[u8] = b"a,1\nb,2\na,3\n";
const ANSWER: &[u8] = b"key1,count,sum_2\na,2,4\nb,1,2\n";

fn query() -> Command {
    ringfold(["aggregate", "-d,", "-k1", "-acount,sum:2"])
}

/// A run over bytes in a file, and one over a pipe.
fn runs(dir: &Path, bytes: &[u8]) -> [Ended; 2] {
    let path = write(dir, "file", bytes);
    let of_file = end(query().arg(path));
    let mut piped = query();
    let mut child = start(piped.stdin(Stdio::piped()));
    feed(&mut child, bytes.to_vec());
    [of_file, end_of(child)]
}

#[track_caller]
fn assert_read(bytes: &[u8], what: &str) {
    for ended in runs(dir().path(), bytes) {
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{what}");
        assert_eq!(ended.stdout, ANSWER, "{what}");
    }
}

#[track_caller]
fn assert_refused(bytes: &[u8], words: &str, what: &str) {
    for ended in runs(dir().path(), bytes) {
        let error = ended.failure(1);
        assert!(error.contains(words), "{what}: {error}");
    }
}

/// `gzip` and `bzip2` leave out what follows the last member, with a warning where it isn't zeros.
#[test]
fn what_follows_gzip_and_bzip2_is_left_out() {
    for (name, compress) in [("gzip", gzip as fn(&[u8]) -> Vec<u8>), ("bzip2", bzip)] {
        for text in [
            compress(TEXT),
            [&TEXT[..4], &TEXT[4..]].map(compress).concat(),
        ] {
            let followed = |by: &[u8]| [&text[..], by].concat();
            for zeros in [2, 8, 512, 200_000] {
                assert_read(
                    &followed(&vec![0; zeros]),
                    &format!("{name}, {zeros} zeros"),
                );
            }
            let long = b"no member\n".repeat(20_000);
            for rest in [&b"\r\n"[..], b"garbage, as it comes\n", b"\0\0x", &long] {
                let what = format!("{name} {}", rest[..2].escape_ascii());
                for ended in runs(dir().path(), &followed(rest)) {
                    let (answer, said) = ended.answer_and_notices();
                    assert_eq!(answer, ANSWER, "{what}");
                    let words = format!("the last {} bytes are no compressed data", rest.len());
                    assert!(said.contains(&words), "{what}: {said}");
                    assert_eq!(said.lines().count(), 1, "{what}: {said}");
                }
            }
            // In a pipe a byte more may be the end of a member that is cut off.
            let place = dir();
            let path = write(place.path(), "file", &followed(b"\n"));
            assert_eq!(end(query().arg(&path)).answer_and_notices().0, ANSWER);
            // A member that is cut off, or that follows something else, is lost data.
            let next = compress(b"c,1\n");
            for cut in [2, 3, 5, 9, next.len() - 1] {
                assert_refused(
                    &followed(&next[..cut]),
                    name,
                    &format!("{name}, cut at {cut}"),
                );
            }
            let between = followed(&[b"garbage", &next[..]].concat());
            assert_refused(&between, name, &format!("{name}, garbage between"));
            for at in [0, 1] {
                let mut damaged = next.clone();
                damaged[at] ^= 0x10;
                assert_refused(
                    &followed(&damaged),
                    name,
                    &format!("{name}, damaged at {at}"),
                );
            }
        }
    }
}

/// A frame to be skipped, of so many bytes.
fn skipped(bytes: usize) -> Vec<u8> {
    let size = u32::try_from(bytes).unwrap().to_le_bytes();
    [&b"\x53\x2a\x4d\x18"[..], &size, &vec![7; bytes]].concat()
}

fn lz4_legacy(text: &[u8]) -> Vec<u8> {
    let block = |text: &[u8]| {
        let packed = lz4_flex::block::compress(text);
        let size = u32::try_from(packed.len()).unwrap().to_le_bytes();
        [&size[..], &packed].concat()
    };
    let blocks = text.chunks(8 << 20).flat_map(block);
    b"\x02\x21\x4c\x18".iter().copied().chain(blocks).collect()
}

#[test]
fn frames_to_be_skipped_stand_anywhere() {
    for compress in [zstandard as fn(&[u8]) -> Vec<u8>, lz4, lz4_legacy] {
        for size in [0, 4, 5000, 3 << 20] {
            let skip = || skipped(size);
            let [front, back] = [&TEXT[..4], &TEXT[4..]].map(compress);
            let all = [skip(), skip(), front, skip(), back, skip()].concat();
            assert_read(&all, &format!("{size}"));
            let cut = &all[..all.len() - 1];
            assert_refused(cut, "cut off", &format!("{size}"));
        }
        // Larger frames are decoded side by side.
        let text = TEXT.repeat(200_000);
        let frames = [skipped(9), compress(&text), skipped(9), compress(&text)].concat();
        for ended in runs(dir().path(), &frames) {
            assert_eq!(
                ended.answer(),
                b"key1,count,sum_2\na,800000,1600000\nb,400000,800000\n"
            );
        }
    }
}

#[test]
fn older_formats_are_read() {
    let mut lzma = liblzma::write::XzEncoder::new_stream(
        Vec::new(),
        liblzma::stream::Stream::new_lzma_encoder(
            &liblzma::stream::LzmaOptions::new_preset(6).unwrap(),
        )
        .unwrap(),
    );
    lzma.write_all(TEXT).unwrap();
    let lzma = lzma.finish().unwrap();
    let zlib = |level| {
        let level = flate2::Compression::new(level);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), level);
        zlib.write_all(TEXT).unwrap();
        zlib.finish().unwrap()
    };
    let legacy = lz4_legacy(TEXT);
    for (name, bytes) in [
        ("lz4", legacy.clone()),
        ("lzma", lzma),
        ("zlib", zlib(0)),
        ("zlib", zlib(1)),
        ("zlib", zlib(6)),
        ("zlib", zlib(9)),
    ] {
        assert_read(&bytes, name);
        let cut = &bytes[..bytes.len() - 3];
        assert_refused(cut, name, &format!("{name}, cut off"));
    }
    let both = [
        lz4_legacy(&TEXT[..4]),
        lz4(&TEXT[4..8]),
        lz4_legacy(&TEXT[8..]),
    ];
    assert_read(&both.concat(), "lz4 of both formats");
}

/// Texts that begin as compressed data do, or nearly so.
#[test]
fn text_is_never_taken_for_compressed_data() {
    for first in [
        &b"x^"[..],
        b"x\xda",
        b"x\x9c",
        b"x\x01",
        b"]",
        b"]\0\0",
        b"]\0\0\0\x01aaaaaaaa",
        b"BZh9",
        b"P*M",
        b"\x1f\x9d",
        b"(\xb5/",
    ] {
        for rest in [&b",1\n"[..], &b",1\nbb,2\n".repeat(3000)] {
            let text = [first, rest].concat();
            let lines = text.iter().filter(|&&byte| byte == b'\n').count();
            let want = format!("{lines}\n").into_bytes();
            for mut ended in runs(dir().path(), &text) {
                ended.code = Some(0);
                let sum = String::from_utf8_lossy(&ended.stdout).into_owned();
                let count = sum.lines().skip(1).map(|line| {
                    let mut fields = line.rsplit(',');
                    fields.next();
                    fields.next().unwrap().parse::<usize>().unwrap()
                });
                let got = format!("{}\n", count.sum::<usize>()).into_bytes();
                assert_eq!(got, want, "{} {}", first.escape_ascii(), ended.stderr);
            }
        }
    }
}

/// A tar archive of one file.
fn tar(text: &[u8]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..5].copy_from_slice(b"a.log");
    header[100..108].copy_from_slice(b"0000644\0");
    header[124..136].copy_from_slice(format!("{:011o}\0", text.len()).as_bytes());
    header[148..156].copy_from_slice(b"        ");
    header[156] = b'0';
    header[257..265].copy_from_slice(b"ustar  \0");
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let padding = 512 - text.len() % 512;
    [&header[..], text, &vec![0; padding + 1024]].concat()
}

#[test]
fn archives_and_holes_are_refused_by_name() {
    let dir = dir();
    let compress = b"\x1f\x9d\x90a\xc2\xb0\x88\xa1@\x8c\x18\x162\x14\x00";
    for (what, bytes, hint) in [
        ("tar", tar(TEXT), "`tar -xOf"),
        ("tar.gz", gzip(&tar(TEXT)), "`tar -xOf"),
        ("tar.zst", zstandard(&tar(TEXT)), "`tar -xOf"),
        (".Z", compress.to_vec(), "`zcat"),
        ("holes", [&[0; 4096][..], TEXT].concat(), "`tr -d '\\0'"),
        (
            "large holes",
            [&vec![0; 3 << 20][..], TEXT].concat(),
            "`tr -d '\\0'",
        ),
    ] {
        assert_refused(&bytes, hint, what);
        // Behind a file that is text, too, where it isn't compressed.
        if what.ends_with("gz") || what.ends_with("zst") {
            continue;
        }
        let text = write(dir.path(), "text", TEXT);
        let path = write(dir.path(), "second", &bytes);
        let error = end(query().arg(text).arg(&path)).failure(1);
        assert!(error.contains(hint) && error.contains("second"), "{error}");
        if what.ends_with("holes") {
            let error = end(ringfold(["aggregate", "-d,"]).arg(&path)).failure(1);
            assert!(error.contains(hint), "{error}");
        }
        // A count is that of wc.
        let counted = end(ringfold(["count", "--bytes"]).arg(&path)).answer();
        let want = format!("{} {}\n", bytes.len(), path.display());
        assert_eq!(String::from_utf8_lossy(&counted), want);
    }
}
