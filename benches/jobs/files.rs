//! The files that are asked: orders and a web log, made from fixed seeds, so that they are the same each time.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::data::Random;

/// A file of the benchmark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Ten columns, no quotes.
    Orders,
    /// The same with quoted fields that hold commas, doubled quotes and newlines.
    Quoted,
    /// Forty columns with tabs between them.
    Wide,
    /// `Orders` with one malformed record in a hundred.
    Bad,
    /// What a web server writes, in the format `combined`.
    Log,
    /// `Orders` as JSON lines.
    Json,
    /// `Orders`, compressed by gzip.
    Gzip,
    /// `Orders`, compressed by zstd.
    Zstd,
}

pub const COUNTRIES: u64 = 200;
/// In each country; the names are the same everywhere.
const CITIES: u64 = 5_000;
const PRODUCTS: u64 = 50_000;
const WIDE_KEYS: u64 = 1_000;
pub const WIDE_COLUMNS: usize = 40;
/// One record in so many is malformed.
const BAD_ONE_IN: u64 = 100;
const ROWS_AT_ONCE: u64 = 1 << 12;

pub const COLUMNS: [&str; 10] = [
    "id", "time", "country", "city", "product", "quantity", "price", "discount", "status", "note",
];
const STATUSES: [&str; 6] = [
    "shipped",
    "shipped",
    "shipped",
    "pending",
    "cancelled",
    "returned",
];
const GOODS: [&str; 8] = [
    "Lamp", "Chair", "Kettle", "Rope", "Shelf", "Mug", "Torch", "Blanket",
];
const NOTES: [&str; 8] = [
    "",
    "",
    "",
    "gift",
    "fragile",
    "leave at door",
    "call before delivery",
    "second try",
];
/// The columns of the log as text with blanks between them.
const LOG_COLUMNS: [&str; 10] = [
    "host", "ident", "user", "time", "zone", "request", "status", "bytes", "referer", "agent",
];
const LOG_STATUSES: [u16; 16] = [
    200, 200, 200, 200, 200, 200, 200, 200, 200, 206, 301, 304, 304, 404, 404, 500,
];
const METHODS: [&str; 8] = ["GET", "GET", "GET", "GET", "GET", "GET", "POST", "HEAD"];
const REFERERS: [&str; 4] = [
    "-",
    "-",
    "https://www.example.com/",
    "https://search.example.org/find?q=garden+furniture",
];
const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 \
     Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:127.0) Gecko/20100101 Firefox/127.0",
    "Mozilla/5.0 (compatible; ExampleBot/2.1; +https://www.example.com/bot.html)",
    "curl/8.8.0",
];
const CONSONANTS: &[u8] = b"bdfglmnr";
const VOWELS: &[u8] = b"aeiou";
const SYLLABLES: u64 = (CONSONANTS.len() * VOWELS.len()) as u64;

impl Kind {
    pub const ALL: [Kind; 8] = [
        Kind::Orders,
        Kind::Quoted,
        Kind::Wide,
        Kind::Bad,
        Kind::Log,
        Kind::Json,
        Kind::Gzip,
        Kind::Zstd,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Orders => "orders.csv",
            Kind::Quoted => "quoted.csv",
            Kind::Wide => "wide.tsv",
            Kind::Bad => "bad.csv",
            Kind::Log => "access.log",
            Kind::Json => "orders.jsonl",
            Kind::Gzip => "orders.csv.gz",
            Kind::Zstd => "orders.csv.zst",
        }
    }

    pub fn delimiter(self) -> char {
        match self {
            Kind::Wide => '\t',
            Kind::Log => ' ',
            _ => ',',
        }
    }

    pub fn columns(self) -> Vec<String> {
        match self {
            Kind::Wide => (1..=WIDE_COLUMNS).map(|n| format!("c{n}")).collect(),
            Kind::Log => LOG_COLUMNS.map(str::to_string).to_vec(),
            _ => COLUMNS.map(str::to_string).to_vec(),
        }
    }

    /// The program that compresses and decompresses it.
    pub fn compressor(self) -> Option<&'static str> {
        match self {
            Kind::Gzip => Some("gzip"),
            Kind::Zstd => Some("zstd"),
            _ => None,
        }
    }
}

/// The file of a kind whose text has so many bytes, or a few more, made where it is missing.
pub fn file(kind: Kind, bytes: u64, folder: &Path) -> io::Result<PathBuf> {
    let path = folder.join(format!("{}MiB-{}", bytes >> 20, kind.name()));
    if path.exists() {
        return Ok(path);
    }
    fs::create_dir_all(folder)?;
    let part = path.with_extension("part");
    if let Some(compressor) = kind.compressor() {
        let text = file(Kind::Orders, bytes, folder)?;
        let mut run = Command::new(compressor);
        run.arg("-c").stdin(Stdio::null());
        run.arg(text).stdout(File::create(&part)?);
        let status = run.status()?;
        if !status.success() {
            return Err(io::Error::other(format!("{compressor}: {status}")));
        }
        File::open(&part)?.sync_all()?;
    } else {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(&part)?);
        write(kind, bytes, &mut out)?;
        out.into_inner()?.sync_all()?;
    }
    fs::rename(part, &path)?;
    Ok(path)
}

/// A small table beside the orders, with a row for each country.
pub fn countries(folder: &Path) -> io::Result<()> {
    let mut text = String::from("country,region\n");
    for country in 0..COUNTRIES {
        text += &format!("{},region {}\n", country_name(country), country % 9);
    }
    fs::write(folder.join("countries.csv"), text)
}

fn write(kind: Kind, bytes: u64, out: &mut impl Write) -> io::Result<()> {
    let mut random = Random(7);
    let mut text = Vec::new();
    if !matches!(kind, Kind::Log | Kind::Json) {
        text.extend(
            kind.columns()
                .join(&kind.delimiter().to_string())
                .into_bytes(),
        );
        text.push(b'\n');
    }
    let (mut written, mut number) = (0, 0);
    while written < bytes {
        for _ in 0..ROWS_AT_ONCE {
            match kind {
                Kind::Wide => wide(&mut random, number, &mut text)?,
                Kind::Log => request(&mut random, number, &mut text)?,
                _ => order(kind, &mut random, number, &mut text)?,
            }
            number += 1;
            if written + text.len() as u64 >= bytes {
                break;
            }
        }
        out.write_all(&text)?;
        written += text.len() as u64;
        text.clear();
    }
    Ok(())
}

/// One order. `Bad` and `Json` draw what `Orders` draws, so that their good records are the same.
fn order(kind: Kind, random: &mut Random, number: u64, text: &mut Vec<u8>) -> io::Result<()> {
    // The first countries have more orders than the last.
    let country = (COUNTRIES as f64 * random.unit().powi(2)) as u64;
    let city = random.below(CITIES);
    let product = random.below(PRODUCTS);
    let quantity = 1 + random.below(20);
    let scale = 8 + random.below(12);
    let cents = 99 + random.below(1 << scale);
    let status = STATUSES[random.below(STATUSES.len() as u64) as usize];
    let note = NOTES[random.below(NOTES.len() as u64) as usize];
    let discount = match random.below(4) {
        0 => "0.05",
        1 => "0.1",
        _ => "",
    };
    let good = GOODS[(product % GOODS.len() as u64) as usize];
    let (country, city) = (country_name(country), city_name(city));
    let id = 1_000_000 + number;
    let time = time(number);
    let price = format!("{}.{:02}", cents / 100, cents % 100);
    if kind == Kind::Quoted {
        let product = match product % 4 {
            0 => format!("\"{good}, {product:05}\""),
            _ => format!("{good} {product:05}"),
        };
        let note = match number % 5 {
            0 => format!("\"{note}, \"\"{good}\"\" and more\""),
            1 => format!("\"{note}\n{city}, {country}\""),
            2 => format!("\"{note}\""),
            _ => note.to_string(),
        };
        return writeln!(
            text,
            "{id},{time},{country},\"{city}\",{product},{quantity},{price},{discount},{status},{note}"
        );
    }
    let product = format!("{good} {product:05}");
    if kind == Kind::Json {
        let discount = if discount.is_empty() {
            "null"
        } else {
            discount
        };
        return writeln!(
            text,
            "{{\"id\":{id},\"time\":\"{time}\",\"country\":\"{country}\",\"city\":\"{city}\",\"product\":\"{product}\",\
             \"quantity\":{quantity},\"price\":{price},\"discount\":{discount},\"status\":\"{status}\",\"note\":\"{note}\"}}"
        );
    }
    // A generator of its own, so that the draws above stay the same.
    let mut chance = Random(number);
    if kind == Kind::Bad && chance.below(BAD_ONE_IN) == 0 {
        return match chance.below(5) {
            0 => writeln!(text, "{id},{time},{country},{city},{product},{quantity}"),
            // An empty field too many is none to DuckDB.
            1 => writeln!(
                text,
                "{id},{time},{country},{city},{product},{quantity},{price},{discount},{status},{note},copy"
            ),
            2 => writeln!(
                text,
                "{id},{time},{country},{city},{product},{quantity},n/a,{discount},{status},{note}"
            ),
            3 => writeln!(
                text,
                "{id},{time},{country},{city},{product},several,{price},{discount},{status},{note}"
            ),
            _ => writeln!(text, "## connection lost, {number} tried again"),
        };
    }
    writeln!(
        text,
        "{id},{time},{country},{city},{product},{quantity},{price},{discount},{status},{note}"
    )
}

/// Forty columns: a key in the second, numbers in the fifth and sixth, words and numbers in the others.
fn wide(random: &mut Random, number: u64, text: &mut Vec<u8>) -> io::Result<()> {
    for column in 1..=WIDE_COLUMNS {
        let drawn = random.draw();
        match column {
            1 => write!(text, "{number}")?,
            2 => write!(text, "{}", word(drawn % WIDE_KEYS * 37 + 11, 3))?,
            5 => write!(text, "{}", drawn % 1_000)?,
            6 => write!(text, "{}.{:02}", drawn % 10_000, drawn >> 32 & 63)?,
            _ if column % 4 == 0 => {}
            _ if column % 3 == 0 => write!(text, "{}", word(drawn % 60_000, 3))?,
            _ => write!(text, "{}", drawn % 100_000)?,
        }
        text.push(if column == WIDE_COLUMNS { b'\n' } else { b'\t' });
    }
    Ok(())
}

/// One request of a log, every third of a second or so.
fn request(random: &mut Random, number: u64, text: &mut Vec<u8>) -> io::Result<()> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let [a, b, c] = [(); 3].map(|()| random.below(256));
    let user = match random.below(50) {
        0 => word(random.below(3_000), 3),
        _ => "-".to_string(),
    };
    // As `2024-01-02T03:04:05Z`.
    let time = time(number / 9);
    let month: usize = time[5..7].parse().map_err(io::Error::other)?;
    let method = METHODS[random.below(METHODS.len() as u64) as usize];
    let (folder, page) = (word(random.below(60), 2), word(random.below(20_000), 3));
    let query = match random.below(4) {
        0 => format!("?page={}&sort=price", random.below(40)),
        _ => String::new(),
    };
    let status = LOG_STATUSES[random.below(LOG_STATUSES.len() as u64) as usize];
    let scale = 7 + random.below(14);
    let bytes = match random.below(1 << scale) {
        // Nothing was sent.
        _ if status == 304 => "-".to_string(),
        drawn => (150 + drawn).to_string(),
    };
    let referer = REFERERS[random.below(REFERERS.len() as u64) as usize];
    let agent = AGENTS[random.below(AGENTS.len() as u64) as usize];
    writeln!(
        text,
        "10.{a}.{b}.{c} - {user} [{}/{}/{}:{} +0000] \"{method} /{folder}/{page}{query} HTTP/1.1\" {status} {bytes} \
         \"{referer}\" \"{agent}\"",
        &time[8..10],
        MONTHS[month - 1],
        &time[..4],
        &time[11..19],
    )
}

/// Another name for each number below 200, by syllables that all have two letters.
fn country_name(number: u64) -> String {
    word(number * 1_013 % SYLLABLES.pow(2), 2) + "land"
}

fn city_name(number: u64) -> String {
    word(number * 37_777 % SYLLABLES.pow(3), 3)
}

fn word(mut number: u64, syllables: usize) -> String {
    let mut word = String::new();
    for _ in 0..syllables {
        let syllable = (number % SYLLABLES) as usize;
        number /= SYLLABLES;
        word.push(CONSONANTS[syllable / VOWELS.len()].into());
        word.push(VOWELS[syllable % VOWELS.len()].into());
    }
    word[..1].make_ascii_uppercase();
    word
}

/// An order every three seconds of the year 2024, and again from its start.
fn time(number: u64) -> String {
    const MONTHS: [u64; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let seconds = number * 3 % (366 * 86_400);
    let (mut day, mut month) = (seconds / 86_400, 0);
    while day >= MONTHS[month] {
        day -= MONTHS[month];
        month += 1;
    }
    let (month, day, second) = (month + 1, day + 1, seconds % 86_400);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!(
        "2024-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z",
        second % 60
    )
}
