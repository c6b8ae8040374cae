use super::*;

/// Fields without quotes.
fn plain() -> Style {
    Style {
        quote: Some(None),
        ..Style::default()
    }
}

fn sniffed(style: Style, text: &str) -> Result<Option<u8>, Vec<(u8, usize)>> {
    let sample = style.look(&Input::memory([text.as_bytes()]), Delimiter::Sniffed);
    sample
        .map(|sample| sample.delimiter)
        .map_err(|error| match error.job() {
            Some(Refusal::Undelimited { candidates, .. }) => candidates.clone(),
            _ => panic!("{error}"),
        })
}

#[test]
fn the_only_even_one_is_meant() {
    let quoted = Style {
        quote: Some(Some(b'"')),
        ..plain()
    };
    let comma = Style {
        has_decimal_comma: true,
        ..plain()
    };
    let ragged = Style {
        is_ragged: true,
        ..plain()
    };
    let skipping = Style {
        skip_lines: 2,
        comment: b"#".to_vec(),
        ..plain()
    };
    for (style, text, want) in [
        (plain(), "a,b\nc,d;e\n", Ok(Some(b','))),
        (plain(), "a\tb c\nd\te f,g", Ok(Some(b'\t'))),
        (plain(), "a|b|c\r\n\r\nd|e|f\r\n", Ok(Some(b'|'))),
        (plain(), "city;price\nBern;1,5\n", Ok(Some(b';'))),
        (
            plain(),
            "Bern;1,5;x\nOslo;2,5;y\n",
            Err(vec![(b',', 2), (b';', 3)]),
        ),
        (comma, "Bern;1,5;x\nOslo;2,5;y\n", Ok(Some(b';'))),
        (plain(), "a b\nc d\n", Ok(Some(b' '))),
        (plain(), "a b\nc d,e\n", Err(vec![])),
        (plain(), "a\nb\n", Err(vec![])),
        (plain(), "a,b\nc,d,e\n", Err(vec![])),
        (ragged, "a,b\nc,d,e\n", Ok(Some(b','))),
        (plain(), "\"a,b\";c\n\"d\";e\n", Ok(Some(b';'))),
        (
            quoted.clone(),
            "\"a\n,b\",c;d\n\"d,\"\"\",e\n",
            Ok(Some(b',')),
        ),
        (skipping, "x;y\nx;y\n#\na,b\n#;\n", Ok(Some(b','))),
        (plain(), "\u{feff}\n\n", Ok(None)),
        (plain(), "", Ok(None)),
    ] {
        assert_eq!(sniffed(style, text), want, "{text}");
    }
    for (text, is_json) in [
        ("\n {\"a,b\" :1}\n", true),
        ("{\"a\",1}\n", false),
        ("{a,b\n{c,d\n", false),
    ] {
        let sniffed = plain().look(&Input::memory([text.as_bytes()]), Delimiter::Sniffed);
        let refusal = sniffed.err().and_then(|error| error.job().cloned());
        assert_eq!(refusal == Some(Refusal::LooksLikeJson), is_json, "{text}");
    }
    // What comes after the first records says nothing.
    let text = ["a,b\n".repeat(RECORDS), "a,b,c\n".into()].concat();
    assert_eq!(sniffed(plain(), &text), Ok(Some(b',')));
    let long = format!("a,b\nc,\"{}\n", "\n".repeat(2 * BYTES));
    assert_eq!(sniffed(quoted, &long), Ok(Some(b',')));
}

#[test]
fn semicolons_under_another_name() {
    let likely = Delimiter::Likely(b',');
    let checked = |text: &str| plain().look(&Input::memory([text.as_bytes()]), likely);
    for text in ["a,b\n1;2,3\n", "a\nb\n", "a;b\nc\n", "1,2;3\n1,2;3\n", ""] {
        assert!(checked(text).is_ok(), "{text}");
    }
    for text in ["a;b\n1;2\n", "a;b\n1,5;2\n", "a;b\n"] {
        assert!(checked(text).is_err(), "{text}");
    }
}

#[test]
fn first_records_say_whether_fields_are_quoted() {
    let style = Style {
        quote: None,
        has_header: true,
        ..plain()
    };
    for (delimiter, text, quote, doubts, longer) in [
        (b',', "a,b\n1,2\n", Some(QUOTE), &[][..], None),
        (b';', "a;b\n1;2\n", None, &[], None),
        (b';', "\"a\";b\n1;2\n", Some(QUOTE), &[], None),
        (b'\t', "a\tb\n\"x\ty\"\t2\n", Some(QUOTE), &[], None),
        (b'\t', "a\tb\n5\"\t2\n", None, &[], None),
        (
            b'\t',
            "a\tb\n\"x\"y\t2\n",
            None,
            &[(DoubtKind::Quotes, 4)],
            None,
        ),
        (
            b',',
            "a,b\n1, \"2\"\n",
            Some(QUOTE),
            &[(DoubtKind::BlanksBeforeQuotes, 6)],
            None,
        ),
        (
            b'|',
            "a|b\r\r\n1|2\r\r\n",
            None,
            &[(DoubtKind::CarriageReturns, 3)],
            None,
        ),
        (
            b';',
            "a;b\n1;2;\n3;4;\n",
            None,
            &[],
            Some(Hint::LastDelimiter(b';')),
        ),
        (
            b';',
            "a;b\nx;1;2\ny;3;4\n",
            None,
            &[],
            Some(Hint::RowNames(b';')),
        ),
    ] {
        let input = Input::memory([text.as_bytes()]);
        let sample = style.look(&input, Delimiter::Named(delimiter)).unwrap();
        let found = sample.doubts.iter().map(|doubt| (doubt.kind, doubt.byte));
        let found: Vec<_> = found.collect();
        assert_eq!(
            (sample.quote, &*found, sample.longer),
            (quote, doubts, longer),
            "{text}"
        );
    }
    let doubled = "a||1\nb||2\n";
    let error = style.look(&Input::memory([doubled.as_bytes()]), Delimiter::Sniffed);
    let hint = Hint::DoubledDelimiter(b'|');
    let refusal = error.unwrap_err().job().cloned();
    assert!(matches!(refusal, Some(Refusal::Malformed { hint: found, .. }) if found == hint));
    assert_eq!(
        separator_line(b"\xef\xbb\xbfsep=;\r\na;b"),
        Some((b';', 10))
    );
    assert_eq!(separator_line(b"sep=,b\n"), None);
}
