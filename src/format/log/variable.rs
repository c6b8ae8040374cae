//! The variables of nginx and the directives of Apache: how their columns are called, and what values look like.

use crate::format::log::form::Form;

/// A variable of a pattern.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Variable {
    /// The name of its column.
    pub(super) short: String,
    /// The name where another variable has the short one.
    pub(super) own: String,
    /// It gives the short name to one that is the standard for it.
    pub(super) gives_way: bool,
    pub(super) form: Form,
    /// A request line, which makes three columns.
    pub(super) is_request: bool,
}

impl Variable {
    fn new(short: &str, own: &str, form: Form) -> Variable {
        Variable {
            short: short.into(),
            own: own.into(),
            gives_way: false,
            form,
            is_request: form == Form::Request,
        }
    }

    fn giving_way(self) -> Variable {
        Variable {
            gives_way: true,
            ..self
        }
    }
}

/// Variables of nginx whose values hold no blanks, and how the names of others end that don't, those of headers too.
const WORDS: &str = "\
    connection connection_requests gzip_ratio host hostname http2 http3 https msec pid pipe protocol scheme \
    server_name";
const ENDS_OF_WORDS: &str = "_addr _bytes _cipher _code _host _id _ip _length _method _port _protocol _received _sent _size _time";

fn is_word(name: &str) -> bool {
    let has_end = ENDS_OF_WORDS.split(' ').any(|end| name.ends_with(end));
    has_end || WORDS.split(' ').any(|word| word == name) || name.starts_with("tcpinfo_")
}

/// The variable such as `$status` or `${status}` that a text begins with, and its length.
pub(super) fn nginx(text: &str) -> Result<(Variable, usize), String> {
    let (name, len) = match text.strip_prefix("${") {
        Some(rest) => {
            let len = rest.find('}').ok_or("a `${` isn't closed by `}`")?;
            (&rest[..len], len + 3)
        }
        None => {
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            let len = text
                .bytes()
                .skip(1)
                .take_while(|byte| is_name(*byte))
                .count();
            (&text[1..=len], len + 1)
        }
    };
    if name.is_empty() {
        return Err("a name is missing after `$`".into());
    }
    let of_header = |name: &str| {
        let kinds = ["http_", "cookie_", "trailer_"];
        kinds.iter().any(|kind| name.starts_with(kind))
    };
    let is_list = match name.strip_prefix("upstream_") {
        Some(name) => !of_header(name),
        None => matches!(name, "http_x_forwarded_for" | "proxy_add_x_forwarded_for"),
    };
    let (short, form) = match name {
        "remote_addr" => ("host", Form::Host),
        "remote_user" => ("user", Form::User),
        "time_local" => ("time", Form::Time),
        "time_iso8601" => ("time", Form::Word),
        "body_bytes_sent" => ("bytes", Form::Word),
        "http_referer" => ("referer", Form::Text),
        "http_user_agent" => ("agent", Form::Text),
        "status" => (name, Form::Status),
        "request" => (name, Form::Request),
        _ if is_list => (name, Form::List),
        _ if is_word(name) => (name, Form::Word),
        _ => (name, Form::Text),
    };
    let variable = Variable::new(short, name, form);
    Ok(match name {
        "time_iso8601" => (variable.giving_way(), len),
        _ => (variable, len),
    })
}

/// The directive such as `%>s` or `%{Referer}i` that a text begins with, and its length.
pub(super) fn apache(text: &str) -> Result<(Variable, usize), String> {
    let is_modifier = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'<' | b'>' | b'!' | b',');
    let modifiers = text
        .bytes()
        .skip(1)
        .take_while(|byte| is_modifier(*byte))
        .count();
    let mut at = 1 + modifiers;
    let mut argument = None;
    if text[at..].starts_with('{') {
        let len = text[at..].find('}').ok_or("a `%{` isn't closed by `}`")?;
        let name = text[at + 1..at + len].to_ascii_lowercase();
        argument = Some(name.replace('-', "_"));
        at += len + 1;
    }
    let letter = text[at..]
        .chars()
        .next()
        .ok_or("a letter is missing after `%`")?;
    let long = ["^FB", "^ti", "^to"];
    let long = long.into_iter().find(|long| text[at..].starts_with(long));
    let len = at + long.map_or(letter.len_utf8(), str::len);
    let letter = long.unwrap_or(&text[at..len]);
    let variable = match argument {
        Some(argument) => named(letter, &argument),
        None => {
            let is_final = text[1..at].contains('>');
            unnamed(letter, is_final)
        }
    };
    match variable {
        Some(variable) => Ok((variable, len)),
        None => Err(format!(
            "`{}` isn't known: a name such as $field in its place reads any value",
            &text[..len]
        )),
    }
}

/// A directive with an argument, in small letters.
fn named(letter: &str, argument: &str) -> Option<Variable> {
    let (short, kind, form) = match (letter, argument) {
        ("i", "user_agent") => ("agent", "http_", Form::Text),
        ("i", "x_forwarded_for") => (argument, "http_", Form::List),
        ("i", _) if is_word(argument) => (argument, "http_", Form::Word),
        ("i" | "^ti", _) => (argument, "http_", Form::Text),
        ("o" | "^to", _) => (argument, "sent_http_", Form::Text),
        ("e", _) => (argument, "env_", Form::Text),
        ("n", _) => (argument, "note_", Form::Text),
        ("C", _) => (argument, "cookie_", Form::Text),
        ("x", _) => (argument, "ssl_", Form::Text),
        ("a", "c") => ("peer_address", "", Form::Word),
        ("p", "canonical") => ("port", "", Form::Word),
        ("p", "local") => ("local_port", "", Form::Word),
        ("p", "remote") => ("remote_port", "", Form::Word),
        ("P", "pid") => ("process", "", Form::Word),
        ("P", "tid" | "hextid") => ("thread", "", Form::Word),
        ("T", "s") => ("duration_s", "", Form::Word),
        ("T", "ms") => ("duration_ms", "", Form::Word),
        ("T", "us") => ("duration_us", "", Form::Word),
        ("t", _) => {
            let unit = argument.rsplit(':').next().unwrap_or_default();
            let form = match unit {
                "sec" | "msec" | "usec" | "msec_frac" | "usec_frac" => Form::Word,
                _ => Form::Text,
            };
            let is_format = unit.contains('%');
            let own = if is_format {
                "time_format".into()
            } else {
                format!("time_{unit}")
            };
            return Some(Variable::new("time", &own, form).giving_way());
        }
        _ => return None,
    };
    let own = match kind {
        "" => short.to_string(),
        kind => format!("{kind}{argument}"),
    };
    Some(Variable::new(short, &own, form).giving_way())
}

fn unnamed(letter: &str, is_final: bool) -> Option<Variable> {
    let standard = |short: &str, own: &str, form: Form| Some(Variable::new(short, own, form));
    let other =
        |short: &str, own: &str, form: Form| Some(Variable::new(short, own, form).giving_way());
    match letter {
        "h" => standard("host", "remote_host", Form::Host),
        "a" => other("host", "address", Form::Host),
        "A" => other("local_address", "local_address", Form::Word),
        "l" => standard("ident", "ident", Form::Ident),
        "u" => standard("user", "remote_user", Form::User),
        "t" => standard("time", "time_local", Form::Time),
        "r" => standard("request", "request", Form::Request),
        "s" if is_final => standard("status", "final_status", Form::Status),
        "s" => other("status", "original_status", Form::Status),
        "b" => standard("bytes", "body_bytes", Form::Word),
        "B" => other("bytes", "body_bytes", Form::Word),
        "O" => other("bytes", "bytes_out", Form::Word),
        "I" => other("bytes_in", "bytes_in", Form::Word),
        "S" => other("bytes_all", "bytes_all", Form::Word),
        "D" => other("duration_us", "duration_us", Form::Word),
        "T" => other("duration_s", "duration_s", Form::Word),
        "^FB" => other("first_byte_us", "first_byte_us", Form::Word),
        "v" => standard("server", "canonical_server", Form::Word),
        "V" => other("server", "server_name", Form::Word),
        "p" => standard("port", "canonical_port", Form::Word),
        "m" => other("method", "request_method", Form::Word),
        "U" => other("path", "url_path", Form::Text),
        "q" => other("query", "query", Form::Text),
        "H" => other("protocol", "request_protocol", Form::Word),
        "P" => other("process", "process", Form::Word),
        "X" => other("connection", "connection", Form::Word),
        "k" => other("keepalives", "keepalives", Form::Word),
        "f" => other("file", "file", Form::Text),
        "L" => other("log_id", "log_id", Form::Word),
        "R" => other("handler", "handler", Form::Text),
        _ => None,
    }
}
