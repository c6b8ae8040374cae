//! Functions of URLs, paths and IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Range;

use memchr::{memchr, memchr2, memmem};

use crate::decimal::number::shown;
use crate::expression::formula::Kind;
use crate::expression::function::text::part;
use crate::expression::function::{Function, function};
use crate::expression::value::{Missing, Value};

pub(super) const ALL: &[Function] = &[
    function(
        "url_path(url)",
        "url_path",
        &[Kind::Text],
        Kind::Text,
        |of| {
            let url = of.text(0)?;
            let range = path(&url);
            match range.is_empty() && !url.is_empty() {
                true => Ok(Value::Text((&b"/"[..]).into())),
                false => Ok(part(url, range)),
            }
        },
    ),
    function(
        "url_host(url)",
        "url_host",
        &[Kind::Text],
        Kind::Text,
        |of| {
            let url = of.text(0)?;
            match host(&url) {
                Some(range) => Ok(part(url, range)),
                None => Err(Missing::Null),
            }
        },
    ),
    function(
        "url_query(url, name)",
        "url_query",
        &[Kind::Text, Kind::Text],
        Kind::Text,
        |of| {
            let (url, name) = (of.text(0)?, of.text(1)?);
            match query(&url, &name) {
                Some(range) => Ok(part(url, range)),
                None => Err(Missing::Null),
            }
        },
    ),
    function(
        "url_decode(text)",
        "url_decode",
        &[Kind::Text],
        Kind::Text,
        |of| {
            let text = of.text(0)?;
            if memchr2(b'%', b'+', &text).is_none() {
                return Ok(Value::Text(text));
            }
            Ok(Value::Text(decoded(&text).into()))
        },
    ),
    function(
        "path_prefix(path, count)",
        "path_prefix",
        &[Kind::Text, Kind::Number],
        Kind::Text,
        |of| {
            let (url, count) = (of.text(0)?, of.whole(1)?);
            let path = path(&url);
            let text = &url[path.clone()];
            let mut ends = memchr::memchr_iter(b'/', text)
                .filter(|at| *at > 0)
                .chain([text.len()]);
            let end = match usize::try_from(count - 1) {
                Ok(count) => ends.nth(count).unwrap_or(text.len()),
                Err(_) => 0,
            };
            let range = path.start..path.start + end;
            Ok(part(url, range))
        },
    ),
    function(
        "ip_prefix(address, bits[, bits of IPv6])",
        "ip_prefix",
        &[Kind::Text, Kind::Number, Kind::Number],
        Kind::Text,
        |of| {
            let text = of.text(0)?;
            let no_address = || Missing::other(format!("`{}` is no IP address", shown(&text)));
            let address = std::str::from_utf8(&text)
                .ok()
                .and_then(|text| text.trim().parse().ok());
            let bits = match address.ok_or_else(no_address)? {
                IpAddr::V6(_) if of.len() > 2 => of.whole(2)?,
                _ => of.whole(1)?,
            };
            let bits = bits.max(0);
            let prefix = match address.ok_or_else(no_address)? {
                IpAddr::V4(address) => {
                    let bits = bits.min(32) as u32;
                    let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
                    format!("{}/{bits}", Ipv4Addr::from(u32::from(address) & mask))
                }
                IpAddr::V6(address) => {
                    let bits = bits.min(128) as u32;
                    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
                    format!("{}/{bits}", Ipv6Addr::from(u128::from(address) & mask))
                }
            };
            Ok(Value::Text(prefix.into_bytes().into()))
        },
    )
    .at_least(2),
];

/// Where the host of a URL begins.
fn authority(url: &[u8]) -> Option<usize> {
    // A path may have another URL in it.
    let end = url.iter().position(|byte| b"/?#".contains(byte))?;
    match url[end..].starts_with(b"//") && (end == 0 || url[end - 1] == b':') {
        true => Some(end + 2),
        false => None,
    }
}

/// What stands between the host and the query.
fn path(url: &[u8]) -> Range<usize> {
    let from = match authority(url) {
        None => 0,
        Some(host) => {
            let end = url[host..].iter().position(|byte| b"/?#".contains(byte));
            end.map_or(url.len(), |end| host + end)
        }
    };
    let end = memchr2(b'?', b'#', &url[from..]);
    from..end.map_or(url.len(), |end| from + end)
}

/// The host without user and port.
fn host(url: &[u8]) -> Option<Range<usize>> {
    let from = authority(url)?;
    let end = url[from..].iter().position(|byte| b"/?#".contains(byte));
    let end = end.map_or(url.len(), |end| from + end);
    let from = memchr::memrchr(b'@', &url[from..end]).map_or(from, |at| from + at + 1);
    let end = match url[from..end].first() {
        Some(b'[') => memchr(b']', &url[from..end]).map_or(end, |at| from + at + 1),
        _ => memchr(b':', &url[from..end]).map_or(end, |at| from + at),
    };
    (end > from).then_some(from..end)
}

/// The value of a query's parameter, as it stands there.
fn query(url: &[u8], name: &[u8]) -> Option<Range<usize>> {
    let end = memchr(b'#', url).unwrap_or(url.len());
    let mut at = memchr(b'?', &url[..end])? + 1;
    loop {
        let next = memmem::find(&url[at..end], b"&").map_or(end, |next| at + next);
        if let Some(value) = url[at..next].strip_prefix(name)
            && value.first() == Some(&b'=')
        {
            return Some(next - value.len() + 1..next);
        }
        if next == end {
            return None;
        }
        at = next + 1;
    }
}

/// `%20` and `+` as what they stand for.
fn decoded(text: &[u8]) -> Vec<u8> {
    let (mut all, mut at) = (Vec::with_capacity(text.len()), 0);
    while at < text.len() {
        let digit = |at: usize| char::from(*text.get(at)?).to_digit(16);
        let (byte, length) = match text[at] {
            b'+' => (b' ', 1),
            b'%' => match (digit(at + 1), digit(at + 2)) {
                (Some(high), Some(low)) => ((high * 16 + low) as u8, 3),
                _ => (b'%', 1),
            },
            byte => (byte, 1),
        };
        all.push(byte);
        at += length;
    }
    all
}
