//! `ringfold man`: manual pages, one for the program and one for each command.

use std::io::{self, Write};

use clap::Args;
use clap_mangen::Man;

use crate::cli::console::{open_output, usage, write_output};
use crate::{Error, Result};

/// Print a manual page: ringfold man aggregate | man -l -
#[derive(Args)]
pub(super) struct Command {
    /// The command whose page to print, with all its flags [default: the program's page]
    #[arg(value_name = "COMMAND")]
    page: Option<String>,
}

impl Command {
    /// `cli` is the whole command line.
    pub(super) fn run(&self, cli: clap::Command) -> Result<()> {
        let mut cli = cli.disable_help_subcommand(true);
        cli.build();
        let names = cli
            .get_subcommands()
            .map(|command| command.get_name().to_string());
        let names: Vec<String> = names.collect();
        let page = match &self.page {
            None => cli,
            Some(name) if names.contains(name) => cli
                .find_subcommand(name)
                .cloned()
                .expect("it is among them"),
            Some(name) => {
                let there = names.join(", ");
                return Err(usage(format!(
                    "there is no manual page {name}; there are {there}"
                )));
            }
        };
        let mut text = Vec::new();
        render(&page, &names, &mut text).map_err(|error| Error::output(&error))?;
        write_output(open_output(None)?, |out| out.write_all(&text))
    }
}

/// As clap renders it, with sections of our own at the end.
fn render(page: &clap::Command, names: &[String], out: &mut Vec<u8>) -> io::Result<()> {
    let man = Man::new(page.clone()).source(concat!("ringfold ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    let usage = page.clone().render_usage().to_string();
    plain(out, "SYNOPSIS", usage.trim_start_matches("Usage: "))?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    let is_overview = page.has_subcommands();
    if is_overview {
        man.render_subcommands_section(out)?;
        section(out, "EXIT STATUS")?;
        for (code, meaning) in [
            ("0", "The answer is complete."),
            ("1", "The input, its data or the output failed."),
            ("2", "The command line is wrong."),
            ("130, 143", "SIGINT or SIGTERM ended the run."),
            ("141", "The reader of the output has gone."),
        ] {
            writeln!(out, ".TP\n{code}\n{meaning}")?;
        }
    } else if let Some(after) = page.get_after_long_help().or(page.get_after_help()) {
        let text = after.to_string();
        let (title, text) = text.split_once("Examples:\n").unwrap_or(("", &text));
        plain(out, "NOTES", title)?;
        plain(
            out,
            if text.starts_with("  ") {
                "EXAMPLES"
            } else {
                "NOTES"
            },
            text,
        )?;
    }
    section(out, "SEE ALSO")?;
    let others = names.iter().map(|name| format!("ringfold-{name}"));
    let own = page.get_display_name().unwrap_or("ringfold");
    let others = std::iter::once("ringfold".to_string()).chain(others);
    let others = others.filter(|name| name != own);
    let others: Vec<_> = others
        .map(|name| format!(".BR {} (1)", escaped(&name)))
        .collect();
    writeln!(out, "{}", others.join(" ,\n"))
}

fn section(out: &mut Vec<u8>, title: &str) -> io::Result<()> {
    writeln!(out, ".SH \"{title}\"")
}

/// A text whose lines stay as they are, if there is any.
fn plain(out: &mut Vec<u8>, title: &str, text: &str) -> io::Result<()> {
    if text.trim().is_empty() {
        return Ok(());
    }
    section(out, title)?;
    writeln!(out, ".nf")?;
    for line in text.trim_end().lines() {
        // What begins with a dot or a quote would be a request.
        writeln!(out, "\\&{}", escaped(line))?;
    }
    writeln!(out, ".fi")
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
}
