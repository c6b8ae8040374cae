//! The pattern of `--log`: one that has a name, one of a file, or one as it is typed.
//!
//! Users keep their own in `ringfold/logs.toml` of their configuration folder, as `name = "pattern"`.

use std::collections::BTreeMap;
use std::path::Path;

use crate::cli::console::{about, usage};
use crate::cli::profile::{read_toml, user_file};
use crate::format::log::{NAMED, directives};
use crate::{Kind, Result};

/// The pattern that the flag's value means.
pub(super) fn resolved(value: &str) -> Result<String> {
    if let Some(file) = value.strip_prefix('@') {
        return of_file(file);
    }
    let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    let is_built_in = NAMED
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case(value));
    if is_built_in || value.is_empty() || !value.bytes().all(is_of_name) {
        return Ok(value.into());
    }
    let path = user_file("logs.toml", "patterns of logs")?;
    let own: BTreeMap<String, String> = read_toml(&path, Kind::Usage)?;
    let Some(pattern) = own.get(value) else {
        let known = NAMED.map(|(name, _)| name.to_string()).join(", ");
        let own: Vec<&str> = own.keys().map(String::as_str).collect();
        let own = match own.is_empty() {
            true => "has none".to_string(),
            false => format!("has {}", own.join(", ")),
        };
        return Err(usage(format!(
            "--log: there is no pattern `{value}`: there are {known}, and {} {own}; a configuration's is read by --log \
             '@FILE:{value}'",
            path.display()
        )));
    };
    Ok(pattern.clone())
}

/// The pattern of `FILE` or `FILE:NAME`.
fn of_file(value: &str) -> Result<String> {
    let named = value
        .rsplit_once(':')
        .filter(|_| !Path::new(value).exists());
    let (path, name) = match named {
        Some((path, name)) => (path, Some(name)),
        None => (value, None),
    };
    let text = std::fs::read_to_string(path).map_err(|error| about(Path::new(path), &error))?;
    let found = directives(&text);
    let names: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    let names = match names.is_empty() {
        true => "no log_format and no LogFormat".to_string(),
        false => names.join(", "),
    };
    match (name, &*found) {
        (Some(name), _) => {
            let pattern = found.iter().find(|(known, _)| known == name);
            let pattern = pattern.map(|(_, pattern)| pattern.clone());
            pattern.ok_or_else(|| {
                usage(format!(
                    "--log: {path} has no pattern `{name}`, but {names}"
                ))
            })
        }
        (None, []) => Ok(text.trim().into()),
        (None, [(_, pattern)]) => Ok(pattern.clone()),
        (None, [(first, _), ..]) => Err(usage(format!(
            "--log: {path} has several patterns ({names}): name one, as in --log @{path}:{first}"
        ))),
    }
}
