//! Compares what the runs of a case print. The first answer is the reference; any other one is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::hash::Hasher;
use std::io::{self, Read, Seek};

use twox_hash::XxHash3_64;

use crate::measure::participant::{Participant, Prints};
use crate::measure::process::Output;

/// The answers of a case so far.
#[derive(Default)]
pub struct Answers {
    file_bytes: u64,
    /// Who answered first, and what.
    job: Option<(String, Answer)>,
    lines: Option<(String, Answer)>,
    /// Of participants that are compared with nobody else.
    own: BTreeMap<String, Answer>,
}

/// An answer: how long it is, a hash of it, and where it begins.
#[derive(Clone, PartialEq)]
struct Answer {
    len: u64,
    hash: u64,
    begin: Vec<u8>,
}

/// How much of an answer is kept to be shown.
const SHOWN: usize = 64 << 10;

impl Answers {
    /// No answers yet about a file of this size.
    pub fn new(file_bytes: u64) -> Answers {
        Answers {
            file_bytes,
            ..Answers::default()
        }
    }

    /// The number of lines, once it is known.
    pub fn lines(&self) -> Option<u64> {
        let (_, lines) = self.lines.as_ref()?;
        std::str::from_utf8(&lines.begin).ok()?.parse().ok()
    }

    /// Judges how a run ended; says what is wrong with it. fio is taken at its word on how long it took.
    ///
    /// # Errors
    /// It failed, or its answer is another one.
    pub fn check(&mut self, participant: &Participant, ended: &mut Output) -> Result<(), String> {
        if !ended.status.success() {
            let status = match ended.status.code() {
                Some(code) => format!("exit code {code}"),
                None => ended.status.to_string(),
            };
            return Err(match ended.last_line() {
                "" => status,
                last => format!("{last} ({status})"),
            });
        }
        let failed = |error: io::Error| format!("its answer can't be read: {error}");
        if let Prints::Fio { block } = participant.prints {
            let figures = fio_figures(&ended.output().map_err(failed)?);
            let (bytes, seconds) = figures.ok_or("another answer: it tells no bytes and time")?;
            // It reads whole blocks only.
            if bytes != self.file_bytes / block * block || seconds == 0.0 {
                return Err(format!("another answer: {bytes} bytes read in {seconds} s"));
            }
            ended.cost.own_clock_s = Some(seconds);
            return Ok(());
        }
        let name = &participant.name;
        let mut whole = || Answer::of_file(&mut ended.stdout).map_err(failed);
        match participant.prints {
            Prints::Answer => agree(&mut self.job, name, whole()?),
            Prints::Rows => {
                let text = one_line(&ended.output().map_err(failed)?);
                let answer = Answer::of(&mut &text[..]).map_err(failed)?;
                agree(&mut self.job, name, answer)
            }
            Prints::Lines => agree(&mut self.lines, name, whole()?.first_word()),
            Prints::Count => {
                let whole = whole()?;
                agree(&mut self.lines, name, whole.first_word())?;
                agree(&mut self.job, name, whole)
            }
            Prints::Anything | Prints::Fio { .. } => {
                let answer = whole()?;
                let first = self
                    .own
                    .entry(name.clone())
                    .or_insert_with(|| answer.clone());
                match *first == answer {
                    true => Ok(()),
                    false => Err(difference(&answer, first, "its first one")),
                }
            }
        }
    }
}

/// Compares an answer with the first one, or takes it for that.
fn agree(known: &mut Option<(String, Answer)>, name: &str, answer: Answer) -> Result<(), String> {
    match known {
        None if answer.len == 0 => Err("another answer: none at all".into()),
        None => {
            *known = Some((name.into(), answer));
            Ok(())
        }
        Some((_, right)) if *right == answer => Ok(()),
        Some((who, right)) => Err(difference(&answer, right, &format!("that of {who}"))),
    }
}

impl Answer {
    /// Only its first word, in the part that is kept.
    fn first_word(&self) -> Answer {
        let mut words = self.begin.split(|byte| b" \t\n".contains(byte));
        let word = words.find(|word| !word.is_empty()).unwrap_or_default();
        Answer::of(&mut &word[..]).expect("memory is readable")
    }

    fn of_file(file: &mut File) -> io::Result<Answer> {
        file.rewind()?;
        Answer::of(file)
    }

    fn of(from: &mut dyn Read) -> io::Result<Answer> {
        let mut begin = Vec::new();
        Read::take(&mut *from, SHOWN as u64).read_to_end(&mut begin)?;
        // This hash doesn't depend on how the bytes come.
        let mut hasher = XxHash3_64::new();
        hasher.write(&begin);
        let (mut len, mut rest) = (begin.len() as u64, vec![0; SHOWN]);
        loop {
            match from.read(&mut rest)? {
                0 => break,
                n => {
                    hasher.write(&rest[..n]);
                    len += n as u64;
                }
            }
        }
        let hash = hasher.finish();
        Ok(Answer { len, hash, begin })
    }
}

fn difference(answer: &Answer, right: &Answer, whose: &str) -> String {
    let pairs = right.begin.iter().zip(&answer.begin);
    let at = pairs.take_while(|(a, b)| a == b).count();
    let excerpt = |answer: &Answer| {
        let around = answer
            .begin
            .get(at.saturating_sub(20)..)
            .unwrap_or_default();
        let around = &around[..around.len().min(40)];
        format!("{:?}", String::from_utf8_lossy(around))
    };
    let is_shown = at < right.begin.len().min(answer.begin.len()) || answer.len != right.len;
    if !is_shown {
        return format!("another answer than {whose}, somewhere after its first {SHOWN} bytes");
    }
    let [ours, theirs] = [answer, right].map(excerpt);
    format!("another answer than {whose}, from byte {at} on: {ours} instead of {theirs}")
}

/// The lines `key;min;mean;max` as ringfold's one line.
fn one_line(rows: &[u8]) -> Vec<u8> {
    let rows = String::from_utf8_lossy(rows);
    let entries: Vec<_> = rows
        .lines()
        .map(|row| match row.rsplitn(4, ';').collect::<Vec<_>>()[..] {
            [max, mean, min, key] => format!("{key}={min}/{mean}/{max}"),
            _ => row.to_string(),
        })
        .collect();
    format!("{{{}}}\n", entries.join(", ")).into_bytes()
}

/// How many bytes fio has read, and in how many seconds by its own clock.
fn fio_figures(stdout: &[u8]) -> Option<(u64, f64)> {
    // What it has to remark stands before.
    let begin = stdout.iter().position(|&byte| byte == b'{')?;
    let figures: serde_json::Value = serde_json::from_slice(&stdout[begin..]).ok()?;
    let read = figures.pointer("/jobs/0/read")?;
    let seconds = read.get("runtime")?.as_f64()? / 1e3;
    Some((read.get("io_bytes")?.as_u64()?, seconds))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use crate::measure::answers::*;
    use crate::measure::participant::Kind;
    use crate::measure::process::run;

    fn check(
        answers: &mut Answers,
        name: &str,
        prints: Prints,
        script: &str,
    ) -> Result<(), String> {
        let line: Vec<OsString> = ["sh", "-c", script].map(OsString::from).into();
        let participant = Participant {
            name: name.into(),
            line: line.clone(),
            kind: Kind::Command,
            prints,
            optional: false,
        };
        answers.check(&participant, &mut run(&line).unwrap())
    }

    #[test]
    fn all_answers_are_the_first_one() {
        let mut answers = Answers::new(7);
        let mut ask = |name: &str, prints, script: &str| check(&mut answers, name, prints, script);
        assert_eq!(
            ask("a", Prints::Answer, "echo '{k=1/2/3, l=4/5/6}'"),
            Ok(())
        );
        assert_eq!(
            ask("b", Prints::Rows, "echo 'k;1;2;3'; echo 'l;4;5;6'"),
            Ok(())
        );
        let wrong = ask("c", Prints::Answer, "echo '{k=1/2/4, l=4/5/6}'").unwrap_err();
        assert!(
            wrong.contains("another answer than that of a, from byte 7"),
            "{wrong}"
        );
        assert_eq!(ask("wc", Prints::Lines, "echo ' 12 file'"), Ok(()));
        assert!(ask("n", Prints::Count, "echo 13 7").is_err());
        assert!(ask("w", Prints::Lines, "echo 13").is_err());
        assert_eq!(ask("x", Prints::Anything, "echo x"), Ok(()));
        assert_eq!(ask("y", Prints::Anything, "echo y"), Ok(()));
        assert!(ask("x", Prints::Anything, "echo y").is_err());
        let failed = ask("f", Prints::Answer, "echo no >&2; exit 3").unwrap_err();
        assert_eq!(failed, "no (exit code 3)");
        let fio = r#"echo '{"jobs":[{"read":{"io_bytes":6,"runtime":2}}]}'"#;
        assert_eq!(ask("fio", Prints::Fio { block: 2 }, fio), Ok(()));
        assert!(ask("fio", Prints::Fio { block: 4 }, fio).is_err());
        assert_eq!(answers.lines(), Some(12));
    }

    /// A difference after what is kept is one too.
    #[test]
    fn long_answers_are_compared_to_their_end() {
        let mut answers = Answers::new(1);
        let mut ask = |script: &str| check(&mut answers, "a", Prints::Anything, script);
        let long = |end: &str| format!("head -c 200000 /dev/zero; echo {end}");
        assert_eq!(ask(&long("x")), Ok(()));
        assert_eq!(ask(&long("x")), Ok(()));
        assert!(ask(&long("y")).unwrap_err().contains("somewhere after"));
        assert!(ask(&long("xx")).is_err());
    }
}
