//! The files that are asked. They are made from literal texts and a fixed generator of numbers, the same for ever.

use std::fmt::Write as _;
use std::io::Write as _;

/// A name and what is in the file.
pub type File = (&'static str, Vec<u8>);

/// A linear congruential generator.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = self.0.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A number of up to `whole` digits before the point and `decimals` after it.
    fn number(&mut self, whole: u64, decimals: u64) -> String {
        let mut text = String::from(if self.below(3) == 0 { "-" } else { "" });
        for place in 0..=self.below(whole) {
            let digit = if place == 0 {
                1 + self.below(9)
            } else {
                self.below(10)
            };
            write!(text, "{digit}").unwrap();
        }
        for place in 0..decimals {
            let point = if place == 0 { "." } else { "" };
            write!(text, "{point}{}", self.below(10)).unwrap();
        }
        text
    }

    /// Lines of five keys.
    fn pairs(&mut self, lines: u64, whole: u64, decimals: impl Fn(u64) -> u64) -> Vec<u8> {
        let keys = ["Abha", "Bern", "Graz", "Oslo", "St. John's"];
        let mut text = String::new();
        for line in 0..lines {
            let key = keys[self.below(5) as usize];
            writeln!(text, "{key};{}", self.number(whole, decimals(line))).unwrap();
        }
        text.into_bytes()
    }
}

/// Lines of `key;value`.
pub fn pairs() -> Vec<File> {
    let draw = &mut Draw(1);
    let tenths = draw.pairs(200, 2, |_| 1);
    let mut middle = tenths.clone();
    let half = middle
        .iter()
        .skip(900)
        .position(|byte| *byte == b'\n')
        .unwrap()
        + 901;
    middle.splice(half..half, *b"Bern;12.x\nno delimiter\nOslo;1.0\n");
    let crlf: Vec<u8> = tenths
        .split_inclusive(|byte| *byte == b'\n')
        .take(20)
        .flat_map(|line| [&line[..line.len() - 1], b"\r\n"].concat())
        .collect();
    vec![
        ("cents", draw.pairs(100, 3, |_| 2)),
        ("integers", draw.pairs(100, 5, |_| 0)),
        ("mixed", draw.pairs(100, 3, |line| line % 4)),
        ("6-decimals", draw.pairs(60, 4, |_| 6)),
        ("15-decimals", draw.pairs(60, 3, |_| 15)),
        ("18-decimals", draw.pairs(60, 2, |_| 18)),
        ("19-digits", {
            let mut text = b"a;9223372036854775807\na;9223372036854775807\na;1\nb;-9223372036854775808\n".to_vec();
            text.extend_from_slice(b"b;-9223372036854775808\nc;18446744073709551615\nc;18446744073709551616\n");
            text.extend(draw.pairs(40, 19, |_| 0));
            text
        }),
        ("36-digits", {
            let (nine, one) = ("9".repeat(36), format!("{}1", "0".repeat(35)));
            let text = format!("a;{nine}.{nine}\na;{nine}.{nine}\na;-0.{one}\nb;-{nine}.{nine}\nb;{one}.{one}\n");
            text.into_bytes()
        }),
        ("40-digits", format!("a;1.5\nb;{}\n", "7".repeat(40)).into_bytes()),
        ("long-value", format!("a;2.5\na;{}1.5\na;1.{}\nb;-1\n", "0".repeat(3000), "0".repeat(3000)).into_bytes()),
        ("halves", b"a;0.1\na;0.2\nb;-0.1\nb;-0.2\nc;0.0\nc;-0.1\nd;1.1\nd;1.2\nd;1.2\nd;1.1\ne;-2.5\ne;-2.4\n".to_vec()),
        ("zeros", b"a;-0\nb;-0.0\nb;0.0\nc;0\nc;-0.0\nd;-0.1\nd;0.0\ne;00.0\ne;-00.10\n".to_vec()),
        ("plus", b"a;1.5\na;+1\nb;+2.25\n".to_vec()),
        ("bare-points", b"a;.5\na;5.\nb;-.25\nb;-3.\n".to_vec()),
        ("blanks", b"a; 1.5\na;2.5 \n b ;\t3\nb;  4  \nb; 5\n".to_vec()),
        ("empty-keys", b";1.5\n;2.5\na;3.0\n;-1.0\n".to_vec()),
        ("long-keys", {
            let mut text = String::new();
            for length in [8, 9, 16, 17, 32, 33, 65, 97, 129, 300] {
                let key = "k".repeat(length - 1);
                writeln!(text, "{key}a;1.5\n{key}b;2.5\na{key};3.5\n{key}a;-1.0").unwrap();
            }
            text.into_bytes()
        }),
        ("nul-keys", b"a;1.0\na\0;2.0\na\0\0;3.0\n\0;4.0\n\0a;5.0\na;6.0\na\0b;7.0\nlong key with \0 in it;8.0\n".to_vec()),
        ("odd-keys", b"Z\xc3\xbcrich;1.0\n\xff\xfe;2.0\n\xe6\x97\xa5\xe6\x9c\xac;3.0\n\";4.0\n\"a\";5.0\na,b;6.0\n{x=1};7.0\n|;8.0\na\tb;9.0\n'a';1.0\n".to_vec()),
        ("number-keys", b"10;1.5\n9;2.5\n-3;1.0\n1.0;1.0\n1;2.0\n01;3.0\n1e1;4.0\n;5.0\n".to_vec()),
        ("many-keys", {
            let mut text = String::new();
            for _ in 0..5_000 {
                writeln!(text, "key {};{}", draw.below(2_000), draw.number(2, 1)).unwrap();
            }
            text.into_bytes()
        }),
        ("crlf", crlf),
        ("no-last-newline", b"a;1.0\nb;2.0\na;3.5".to_vec()),
        ("empty", Vec::new()),
        ("one-line", b"Bern;-12.3\n".to_vec()),
        ("blank-lines", b"\n\na;1.0\n\n\r\nb;2.0\n\n".to_vec()),
        ("bom", b"\xef\xbb\xbfa;1.0\na;2.0\n".to_vec()),
        ("bad-first", b"x;y\na;1.0\nb;2.0\n".to_vec()),
        ("bad-middle", middle),
        ("bad-values", {
            let mut text = b"good;1.0\n".to_vec();
            for bad in [
                "a;", "a;-", "a;.", "a;1e3", "a;1_000", "a;1,5", "a;0x10", "a;nan", "a;inf", "a;--1", "a;+-1", "a;1 2", ";",
                "a", "a;b;1", "a;1;", "a;1.2.3", "a;\u{2212}1", "a;1\r\r", "a;\u{a0}1", "a;1\0", "a;\"1\"",
            ] {
                writeln!(text, "{bad}").unwrap();
            }
            text.extend_from_slice(b"good;2.0\n");
            text
        }),
        ("hole", [&b"a;1.0\nb;2"[..], &[0; 200], b".0\na;3.0\n"].concat()),
        ("tenths", tenths),
    ]
}

/// Files of other kinds.
pub fn tables() -> Vec<File> {
    let orders = "city,price,qty,note\nBern,1.50,2,\"a, b\"\nOslo,20,1,\n\"Bern\",2.25,,\"say \"\"yes\"\"\"\n\
                  \"St. John's\",-3,4,\"two\nlines\"\nOslo,0.125,3,z\n,7,1,\"\"\n";
    let gzip = |text: &[u8]| {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(text).unwrap();
        gzip.finish().unwrap()
    };
    let mut wide = String::new();
    let draw = &mut Draw(2);
    for line in 0..30 {
        for column in 1..=40 {
            let end = if column == 40 { '\n' } else { '\t' };
            match (line, column) {
                (0, _) => write!(wide, "c{column}{end}"),
                (_, 1) => write!(wide, "k{}{end}", draw.below(4)),
                _ => write!(wide, "{}{end}", draw.number(1 + column % 5, column % 3)),
            }
            .unwrap();
        }
    }
    let times = "1764200000,2026-11-26T23:33:20Z,a\n1764200000.5,2026-11-26 23:33:20.5+01:00,b\n\
                 1764203600123,\"Fri, 27 Nov 2026 00:33:20 GMT\",a\n1764203600123456,27/Nov/2026:00:33:20 +0000,b\n\
                 1764203600123456789,2026-11-27,c\n";
    let log = "203.0.113.9 - - [25/Nov/2026:13:45:10 +0000] \"GET /a?q=1 HTTP/1.1\" 200 512 \"-\" \"curl/8\"\n\
               203.0.113.9 - ann [25/Nov/2026:13:59:59 +0000] \"GET /b HTTP/1.1\" 404 - \"-\" \"say \\\"x\\\"\"\n\
               198.51.100.7 - - [25/Nov/2026:14:00:00 +0000] \"POST /a HTTP/1.1\" 200 96 \"http://x/\" \"-\"\n\
               198.51.100.7 - - [26/Nov/2026:00:10:00 +0100] \"\\x16\\x03\" 400 150 \"-\" \"-\"\n";
    let json = "{\"path\":\"/\",\"user\":{\"name\":\"ann\",\"paid\":true},\"ms\":12.5}\n\
                {\"path\":\"/\",\"user\":{\"name\":\"bob\",\"paid\":false},\"ms\":7}\n\
                {\"path\":\"\\u002fapi\",\"user\":null,\"ms\":1.5e2,\"tags\":[\"new\"]}\n\
                {\"path\":\"/api\",\"ms\":\"3\"}\n";
    let text = |text: &str| text.as_bytes().to_vec();
    let compressed = gzip(orders.as_bytes());
    vec![
        ("orders.csv", text(orders)),
        (
            "bom.csv",
            text(&format!("\u{feff}{}", orders.replace('\n', "\r\n"))),
        ),
        ("cut.csv.gz", compressed[..compressed.len() - 12].to_vec()),
        ("orders.csv.gz", compressed),
        ("ragged.csv", text("a,b,c\nx,1,2\ny,2\nx,3,4,5\n\nz,,\n")),
        (
            "nulls.csv",
            text("k,v,w\na,NA,1\na,2,\nb,,NA\n,3,null\nb,NULL,4\na,2.50,5\n"),
        ),
        (
            "comma.csv",
            text("Stadt;Preis;Menge\nBern;1,50;2\nOslo;20;1\nBern;2,255;\n"),
        ),
        (
            "semicolons.csv",
            text("city;price;qty\nBern;1.50;2\nOslo;20;1\nBern;2.25;3\n"),
        ),
        ("pairs.csv", text("Bern,1.5\nOslo,2.5\nBern,-3.0\n")),
        ("quote.csv", text("k,v\na,1\nb,\"2\nc,3\n\"d\"x,4\na,5\n")),
        ("words.csv", text("k,v\na,1\nb,free\na,1e2\nb,2\nc,$5\n")),
        (
            "doubles.csv",
            text("k,v\na,3.2e-120\na,0.5\nb,inf\nc,nan\nc,1\nd,1e400\nd,-1E+5\ne,-inf\ne,inf\n"),
        ),
        ("header-twice.csv", text("k,v\na,1\nk,v\na,2\nb,3\n")),
        ("times.csv", text(times)),
        (
            "report.txt",
            text("made by a machine\ncity   price\n# north\nOslo    20,5\nBern     1,5  checked\n"),
        ),
        ("wide.tsv", text(&wide)),
        ("access.log", text(log)),
        ("events.jsonl", text(json)),
        (
            "bad.jsonl",
            text(&format!("{json}{{\"path\":1,}}\n[1]\n{{\"ms\":NaN}}\n")),
        ),
    ]
}
