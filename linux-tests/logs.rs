//! Logs of web servers: what each pattern reads, in every engine, and that a line that may be read in two ways isn't.

use std::collections::BTreeMap;
use std::io::Write;

use proptest::prelude::*;
use proptest::test_runner::{Config as Cases, TestRunner};
use ringfold::query::{OnError, Query};
use ringfold::{Input, fold};

use crate::catalogue::are_all_wanted;
use crate::query::{answer, printed, refused};
use crate::support::{dir, end, feed, ringfold, start, ways_in_small_blocks, write};

const NGINX: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status";
const TIME: &str = "12/Mar/2026:06:25:01 +0000";

/// A line that begins as most do, with more.
fn line(more: &str) -> String {
    format!("192.0.2.1 - - [{TIME}] \"GET /a HTTP/1.1\" 200{more}\n")
}

/// Pattern, lines, keys and the answer: without aggregates there is a count.
fn cases() -> Vec<(String, String, &'static str, &'static str)> {
    let nginx = |more: &str| format!("{NGINX}{more}");
    let lines = |mores: &[&str]| mores.iter().map(|more| line(more)).collect::<String>();
    let request = "192.0.2.1 [12/Mar/2026:06:25:01 +0000] GET /a HTTP/1.1 200 10 0.012\n\
                   192.0.2.1 [12/Mar/2026:06:25:02 +0000] GET /a HTTP/1.1 404 20 0.022\n\
                   192.0.2.2 [12/Mar/2026:06:25:03 +0000] POST /b c HTTP/2.0 200 30 0.032\n";
    vec![
        // Lists of nginx go over blanks.
        (
            nginx(" $upstream_response_time $body_bytes_sent"),
            lines(&[" 0.012, 0.022 1000", " 0.034 : 0.001 2000", " - 3000"]),
            "upstream_response_time,bytes",
            "\"\",3000,1\n\"0.012, 0.022\",1000,1\n0.034 : 0.001,2000,1\n",
        ),
        (
            nginx(" $upstream_addr $upstream_status $upstream_response_time"),
            lines(&[" 10.0.0.1:80, unix:/s : 10.0.0.3:80 502, - : 200 0.1, - : 0.3"]),
            "upstream_addr,upstream_status,upstream_response_time",
            "\"10.0.0.1:80, unix:/s : 10.0.0.3:80\",\"502, - : 200\",\"0.1, - : 0.3\",1\n",
        ),
        (
            "$request_id $upstream_addr $bytes_sent|$request_time|".into(),
            "0 a:80 : b:80, c:80 123456|0.001|\n".into(),
            "upstream_addr,bytes_sent,request_time",
            "\"a:80 : b:80, c:80\",123456,0.001,1\n",
        ),
        // The last variable isn't cut.
        (
            nginx(" $body_bytes_sent $request_time $upstream_response_time"),
            lines(&[
                " 5 0.050 -",
                " 5 0.050 0.012, 0.030",
                " 5 0.050 0.020 : 0.030",
            ]),
            "upstream_response_time",
            "\"\",1\n\"0.012, 0.030\",1\n0.020 : 0.030,1\n",
        ),
        (
            nginx(" $http_user_agent"),
            lines(&[" curl", " Mozilla/5.0 (X11) a"]),
            "agent",
            "Mozilla/5.0 (X11) a,1\ncurl,1\n",
        ),
        // Addresses of proxies.
        (
            "%{X-Forwarded-For}i %l %u %t \"%r\" %>s".into(),
            format!("203.0.113.1, 10.0.0.2{}", &line("")[9..]),
            "x_forwarded_for,ident,user,status",
            "\"203.0.113.1, 10.0.0.2\",\"\",\"\",200,1\n",
        ),
        (
            "%h %l %u %t \"%r\" %>s %b %{X-Forwarded-For}i %D".into(),
            lines(&[" 5 203.0.113.1, 10.0.0.2 77", " 6 - 78"]),
            "x_forwarded_for,duration_us",
            "\"\",78,1\n\"203.0.113.1, 10.0.0.2\",77,1\n",
        ),
        // Requests without quotes.
        (
            "$remote_addr [$time_local] $request $status $body_bytes_sent $request_time".into(),
            request.into(),
            "status,method,path,protocol",
            "200,GET,/a,HTTP/1.1,1\n200,POST,/b c,HTTP/2.0,1\n404,GET,/a,HTTP/1.1,1\n",
        ),
        // Texts with blanks.
        (
            nginx(" $sent_http_content_type $request_time"),
            lines(&[" text/html; charset=utf-8 0.047", " - 0.048"]),
            "sent_http_content_type,request_time",
            "\"\",0.048,1\ntext/html; charset=utf-8,0.047,1\n",
        ),
        (
            "%h %U %s".into(),
            "::1 /a b 200\n::1 /a 404\n".into(),
            "path,status",
            "/a,404,1\n/a b,200,1\n",
        ),
        (
            "combined".into(),
            line(" 5 \"-\" \"a\"").replace("- - [", "- John Smith ["),
            "host,user",
            "192.0.2.1,John Smith,1\n",
        ),
        (
            "$prefix %h %l %u %t \"%r\" %s".into(),
            format!("Mar  2 06:25:01 web1 nginx: {}", line("")),
            "prefix,host",
            "Mar  2 06:25:01 web1 nginx:,192.0.2.1,1\n",
        ),
        // Times without brackets.
        (
            "%b %B %O $time_local $time_iso8601 $status".into(),
            format!("1 2 3 {TIME} 2026-03-12T06:25:01+00:00 200\n"),
            "bytes,body_bytes,bytes_out,time,time_iso8601",
            "1,2,3,12/Mar/2026:06:25:01 +0000,2026-03-12T06:25:01+00:00,1\n",
        ),
        // Quotes that nobody escaped.
        (
            "combined".into(),
            line(" 5 \"-\" \"a\"").replace("/a HTTP", "/a\" b HTTP"),
            "path,status",
            "\"/a\"\" b\",200,1\n",
        ),
        (
            "combined".into(),
            line(" 5 \"http://x?\"y\" \"a \"b\" c\""),
            "referer,agent",
            "\"http://x?\"\"y\",\"a \"\"b\"\" c\",1\n",
        ),
        // Two variables of one meaning.
        (
            "$host $remote_addr %a %l".into(),
            "www.ex.test 192.0.2.1 10.0.0.1 -\n".into(),
            "host,remote_addr,address",
            "www.ex.test,192.0.2.1,10.0.0.1,1\n",
        ),
        (
            "%{Host}i %a %h %{c}a".into(),
            "www.ex.test 192.0.2.1 10.0.0.1 ::1\n".into(),
            "http_host,address,host,peer_address",
            "www.ex.test,192.0.2.1,10.0.0.1,::1,1\n",
        ),
        (
            "%V %v %U \"%r\" %s %>s %s".into(),
            "a b /u \"GET /v HTTP/1.0\" 301 302 303\n".into(),
            "server_name,server,url_path,path,status,original_status,original_status_2",
            "a,b,/u,/v,302,301,303,1\n",
        ),
        // Directives as they are pasted, and escapes.
        (
            "$remote_addr\\t$status\\t\\\"$request\\\"".into(),
            "::1\t200\t\"GET /a HTTP/1.1\"\n".into(),
            "host,status,path",
            "::1,200,/a,1\n",
        ),
        (
            "log_format main '$remote_addr - $remote_user [$time_local] \"$request\" '\n\
             \x20                 '$status \"$http_user_agent\"';"
                .into(),
            line(" \"b\""),
            "status,agent",
            "200,b,1\n",
        ),
        (
            "'$remote_addr - $remote_user [$time_local] '\n '\"$request\" $status'".into(),
            line(""),
            "status",
            "200,1\n",
        ),
        (
            "LogFormat \"%h %l %u %t \\\"%r\\\" %>s\" short".into(),
            line(""),
            "status",
            "200,1\n",
        ),
        (
            "NGINX".into(),
            line(" 5 \"-\" \"a\""),
            "host,agent",
            "192.0.2.1,a,1\n",
        ),
        (
            "Apache".into(),
            line(" 5 \"-\" \"a\""),
            "ident,agent",
            "\"\",a,1\n",
        ),
        (
            "vhost_combined".into(),
            format!("www.ex.test:443 {}", line(" 5 \"-\" \"a\"")),
            "server,port,host,bytes",
            "www.ex.test,443,192.0.2.1,5,1\n",
        ),
        (
            "%{%Y-%m-%d %T}t.%{msec_frac}t %{%z}t %X %k".into(),
            "2026-03-12 06:25:01.123 +0000 + 3\n".into(),
            "time,time_msec_frac,time_format,connection,keepalives",
            "2026-03-12 06:25:01,123,+0000,+,3,1\n",
        ),
    ]
}

#[test]
fn values_in_every_engine_and_form_of_input() {
    let dir = dir();
    for (pattern, text, keys, want) in cases() {
        let args = ["aggregate", "-q", "--log", &pattern, "-k", keys];
        let want = format!("{keys},count\n{want}");
        let path = write(dir.path(), "access.log", text.as_bytes());
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(text.as_bytes()).unwrap();
        write(dir.path(), "access.log.gz", &gz.finish().unwrap());
        for file in ["access.log", "access.log.gz"] {
            let got = end(ringfold(args).arg(file).current_dir(dir.path())).answer();
            assert_eq!(String::from_utf8_lossy(&got), want, "{pattern}");
        }
        let mut child = start(ringfold(args).stdin(std::process::Stdio::piped()));
        feed(&mut child, text.clone().into_bytes());
        let got = crate::support::end_of(child).answer();
        assert_eq!(String::from_utf8_lossy(&got), want, "{pattern}");
        let mut query = Query::log(&pattern).unwrap();
        for key in keys.split(',') {
            query = query.key(key);
        }
        let slow = query.clone().level(None);
        for (way, config) in ways_in_small_blocks() {
            let input = Input::open([&path]).unwrap();
            for query in [&query, &slow] {
                let got = answer(query, &input, &config).unwrap();
                assert_eq!(got, want, "{way:?} {pattern}");
            }
        }
    }
}

/// Lines that aren't of their pattern: where that is, and the pattern that reads them.
#[test]
fn lines_of_other_forms_are_told_with_the_way_out() {
    let dir = dir();
    let combined = line(" 5 \"-\" \"a\"");
    let proxied = format!("203.0.113.1, 10.0.0.2{}", &combined[9..]);
    let forwarded = COMBINED.replace("%h", "%{X-Forwarded-For}i");
    for (pattern, text, why, other, key, want) in [
        (
            "combined",
            format!("www.ex.test:443 {combined}"),
            "column 1: `host` is a host's name or address, without a port, not `www.ex.test:443`",
            "vhost_combined",
            "host",
            "192.0.2.1",
        ),
        (
            "combined",
            format!("Mar 12 06:25:01 web1 nginx: {combined}"),
            "column 8: `user` is a user's name, not `06:25:01 web1 nginx: 192.0.2.1 - -`",
            &*format!("'$prefix {COMBINED}'"),
            "host",
            "192.0.2.1",
        ),
        (
            "nginx",
            format!("2026-03-12T06:25:01.5Z stdout F {combined}"),
            "column 1: `host` is a host's name or address",
            &*format!("'$prefix {NGINX} $body_bytes_sent \"$http_referer\" \"$http_user_agent\"'"),
            "host",
            "192.0.2.1",
        ),
        (
            "combined",
            proxied,
            "column 1: `host` is a host's name or address, without a port, not `203.0.113.1,`",
            &*format!("'{forwarded}'"),
            "x_forwarded_for",
            "\"203.0.113.1, 10.0.0.2\"",
        ),
        (
            "combined",
            line(" 5"),
            "column 66: ` \"` is missing after `bytes`",
            "common",
            "status",
            "200",
        ),
        (
            "common",
            combined.clone(),
            "column 66: `bytes` is one word, not `5 \"-\" \"a\"`",
            "combined",
            "status",
            "200",
        ),
    ] {
        write(dir.path(), "x.log", text.as_bytes());
        let error = refused(dir.path(), &["--log", pattern, "-k", key, "x.log"], 1);
        let error = match error.contains("no column") {
            true => refused(dir.path(), &["--log", pattern, "-k", "1", "x.log"], 1),
            false => error,
        };
        let bytes = text.len() - 1;
        assert!(
            error.starts_with(&format!("x.log: byte 0-{bytes} (line 1): {why}")),
            "{error}"
        );
        let hint = format!(": `--log {other}` reads this line");
        assert!(error.ends_with(&hint), "{error}");
        let other = other.trim_matches('\'');
        let got = printed(dir.path(), &["-q", "--log", other, "-k", key, "x.log"]);
        assert_eq!(got, format!("{key},count\n{want},1\n"));
    }
}

/// A log without a pattern.
#[test]
fn a_log_without_its_pattern() {
    let dir = dir();
    for (pattern, more) in [("combined", " 5 \"-\" \"a b\""), ("common", " 5")] {
        let text = [line(more), line(more).replace("/a", "/a b")].concat();
        write(dir.path(), "access.log", text.as_bytes());
        let error = refused(dir.path(), &["-k", "9", "access.log"], 2);
        assert_eq!(
            error,
            format!(
                "access.log: the first line is one of a web server's log: `--log {pattern}` reads it; -d names a byte \
                 between fields all the same"
            )
        );
        let args = ["--log", pattern, "-k", "status", "access.log"];
        assert_eq!(printed(dir.path(), &args), "status,count\n200,2\n");
    }
}

const COMBINED: &str = "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\"";

#[test]
fn what_may_be_read_in_two_ways_is_malformed() {
    let dir = dir();
    for (pattern, text, why) in [
        (
            "$x $y",
            "a b c".to_string(),
            "column 1: the line fits the log's pattern in several ways: `x` may be `a` or `a b`",
        ),
        (
            "%h \"%{Referer}i\" \"%{User-Agent}i\" %D",
            "::1 \"a\" \"b\" \"c\" 5".into(),
            "column 6: the line fits the log's pattern in several ways: `referer` may be `a` or `a\" \"b`",
        ),
        (
            "$city $other|$status",
            "New York Rome|200".into(),
            "column 1: the line fits the log's pattern in several ways: `city` may be `New` or `New York`",
        ),
        (
            "%h %s",
            "::1 2000".into(),
            "column 5: `status` is three digits, not `2000`",
        ),
        (
            "%h [%t] x",
            "::1 [no time] x".into(),
            "column 6: `time` is a time, not `no time`",
        ),
        (
            "a%h b%u",
            "b".into(),
            "column 1: `a` is missing before `host`",
        ),
        (
            "%h %D",
            "::1".into(),
            "column 1: ` ` is missing after `host`",
        ),
        (
            "%h %D",
            "::1 5 6".into(),
            "column 5: `duration_us` is one word, not `5 6`",
        ),
        (
            "%h \"%{User-Agent}i\"",
            "::1 \"a\"b c".into(),
            "column 8: the line goes on after `agent`",
        ),
    ] {
        write(dir.path(), "x.log", format!("{text}\n").as_bytes());
        let error = refused(dir.path(), &["--log", pattern, "-k", "1", "x.log"], 1);
        assert!(error.contains(why), "{pattern}: {error}");
    }
}

/// More after a closing quote is told, once, and how often; whatever the blocks are.
#[test]
fn lines_that_go_on_are_told() {
    let dir = dir();
    let short = line(" 5 \"-\" \"a\"");
    let more = |more: &str| line(&format!(" 5 \"-\" \"a\"{more}"));
    let text = [&*short, &more(" 0.004"), &more(" \"-\" \"b c\""), &short].concat();
    write(dir.path(), "x.log", text.as_bytes());
    for block in ["1", "100", "1M"] {
        for filter in ["status = 200", "status = 404"] {
            let args = [
                "aggregate",
                "--log",
                "combined",
                "-acount",
                "--where",
                filter,
                "-b",
                block,
            ];
            let mut command = ringfold(args);
            let (_, said) = end(command.arg("x.log").current_dir(dir.path())).answer_and_notices();
            let want = format!(
                "ringfold: notice: 2 lines go on after the log's pattern, the first at x.log byte {} line {}: what follows isn't read\n",
                short.len(),
                1 + short.lines().count()
            );
            assert_eq!(said, want);
        }
    }
    // An open quote belongs to the last value.
    let open = more(" \"b");
    write(dir.path(), "open.log", open.as_bytes());
    let error = refused(
        dir.path(),
        &["--log", "combined", "-k", "status", "open.log"],
        1,
    );
    assert!(error.contains("the line goes on after `agent`"), "{error}");
}

#[test]
fn names_of_patterns() {
    let dir = dir();
    let root = dir.path();
    write(root, "x.log", line(" 5 \"-\" \"a\"").as_bytes());
    let folder = root.join("config/ringfold");
    std::fs::create_dir_all(&folder).unwrap();
    let run = |log: &str| {
        let mut command = ringfold(["aggregate", "-k", "status", "--log", log, "x.log"]);
        end(command
            .env("XDG_CONFIG_HOME", root.join("config"))
            .current_dir(root))
    };
    let own = folder.join("logs.toml");
    let own = own.display();
    let names = "common, combined, vhost_combined, apache, nginx";
    assert_eq!(
        run("main").failure(2),
        format!(
            "--log: there is no pattern `main`: there are {names}, and {own} has none; a configuration's is read by --log \
             '@FILE:main'"
        )
    );
    write(
        &folder,
        "logs.toml",
        format!("main = '{NGINX} $x'\n").as_bytes(),
    );
    assert_eq!(
        run("mine").failure(2),
        format!(
            "--log: there is no pattern `mine`: there are {names}, and {own} has main; a configuration's is read by --log \
             '@FILE:mine'"
        )
    );
    assert_eq!(run("main").answer(), b"status,count\n200,1\n");
    let conf = format!(
        "http {{\n  # log_format old '$x';\n  log_format short '$x';\n  log_format main '{NGINX} '\n    '$body_bytes_sent \
         \"$http_referer\" \"$http_user_agent\"';\n}}\n"
    );
    write(root, "nginx.conf", conf.as_bytes());
    write(root, "apache.conf", b"LogFormat \"%h %l %u %t \\\"%r\\\" %>s %b \\\"%{Referer}i\\\" \\\"%{User-Agent}i\\\"\" combined\n");
    write(root, "pattern", format!("{COMBINED}\n").as_bytes());
    for log in [
        "@nginx.conf:main",
        "@apache.conf",
        "@apache.conf:combined",
        "@pattern",
    ] {
        assert_eq!(run(log).answer(), b"status,count\n200,1\n", "{log}");
    }
    for (log, code, why) in [
        (
            "@nginx.conf",
            2,
            "--log: nginx.conf has several patterns (short, main): name one, as in --log @nginx.conf:short",
        ),
        (
            "@nginx.conf:old",
            2,
            "--log: nginx.conf has no pattern `old`, but short, main",
        ),
        ("@none", 1, "none: No such file or directory [ENOENT]"),
        (
            "%Z",
            2,
            "the log's pattern can't be understood: `%Z` isn't known: a name such as $field in its place reads any value",
        ),
    ] {
        assert_eq!(run(log).failure(code), why, "{log}");
    }
}

/// Times in keys and the errors of a run, in a log and in other files.
#[test]
fn times_and_errors() {
    let dir = dir();
    let line = |host: &str, time: &str, request: &str, status: &str| {
        format!("{host} - - [{time} +0000] \"{request}\" {status} 10 \"-\" \"a \\\"b\\\"\"\n")
    };
    let text = [
        line("a", "25/Nov/2026:13:00:00", "GET /x HTTP/1.1", "200"),
        line("b", "25/Nov/2026:13:59:59", "\\x16", "400"),
        line("a", "26/Nov/2026:00:00:00", "GET /x HTTP/1.1", "200"),
    ]
    .concat();
    write(dir.path(), "access.log", text.as_bytes());
    let broken = text.replacen("[26", "26", 1);
    write(dir.path(), "broken.log", broken.as_bytes());
    write(
        dir.path(),
        "times.csv",
        b"t,n\n2026-11-25T13:01:00Z,1\n2026-11-25 13:59,2\n,3\n",
    );
    for (args, want) in [
        (
            &["--log", "combined", "-k", "host,path", "access.log"][..],
            "host,path,count\na,/x,2\nb,\\x16,1\n",
        ),
        (
            &[
                "--log",
                "combined",
                "-k",
                "time@day",
                "-a",
                "sum:bytes",
                "access.log",
            ],
            "time_day,sum_bytes\n2026-11-25,20\n2026-11-26,10\n",
        ),
        (
            &[
                "--log",
                "$h - $u [$t] \"$request\" $s $b \"$r\" \"$a\"",
                "-k",
                "s",
                "-a",
                "distinct:h",
                "access.log",
            ],
            "s,distinct_h\n200,1\n400,1\n",
        ),
        (
            &["-H", "-k", "t@hour", "-a", "sum:n", "times.csv"],
            "t_hour,sum_n\n\"\",3\n2026-11-25T13,3\n",
        ),
    ] {
        assert_eq!(printed(dir.path(), args), want, "{args:?}");
    }
    let mut command = ringfold([
        "aggregate",
        "--log",
        "combined",
        "-k",
        "status",
        "broken.log",
    ]);
    let error = end(command.current_dir(dir.path())).failure(1);
    let at = text
        .lines()
        .take(2)
        .map(|line| line.len() + 1)
        .sum::<usize>();
    let to = at + text.lines().nth(2).unwrap().len() - 1;
    let why = "column 5: ` [` is missing after `user`";
    assert_eq!(error, format!("broken.log: byte {at}-{to} (line 3): {why}"));
    let skipped = [
        "aggregate",
        "--log",
        "combined",
        "-k",
        "status",
        "--on-error",
        "skip",
        "broken.log",
    ];
    let (got, said) = end(ringfold(skipped).current_dir(dir.path())).answer_and_notices();
    assert_eq!(got, b"status,count\n200,1\n400,1\n");
    assert!(
        said.contains("1 record skipped") && said.contains("line 3"),
        "{said}"
    );
    for (args, why) in [
        (
            &["--log", "combined", "-H", "access.log"][..],
            "and so does --header",
        ),
        (&["--log", "x y", "access.log"], "a pattern has fields"),
        (
            &["--log", "combined", "-k", "statu", "access.log"],
            "`status`",
        ),
    ] {
        let mut command = ringfold([&["aggregate", "-k", "1"][..], args].concat());
        let error = end(command.current_dir(dir.path())).failure(2);
        assert!(error.contains(why), "{error}");
    }
    write(dir.path(), "bad.csv", b"t\n2026-11-25T13:01\nsoon\n");
    let mut command = ringfold(["aggregate", "-H", "-k", "t@month", "bad.csv"]);
    let error = end(command.current_dir(dir.path())).failure(1);
    assert!(
        error.contains("(line 3): `soon` isn't a time: it is written as 2026-03-12T06:25:01Z"),
        "{error}"
    );
}

/// A variable of a random pattern, and values that it may have.
fn variable() -> impl Strategy<Value = (&'static str, &'static [&'static str])> {
    let variables: [(&str, &[&str]); 12] = [
        ("$status", &["200", "404", "-"]),
        ("$bytes_sent", &["0", "17", "123456"]),
        ("$request_time", &["0.001", "12.000"]),
        ("$remote_addr", &["192.0.2.1", "2001:db8::7"]),
        (
            "$upstream_addr",
            &[
                "-",
                "10.0.0.1:80",
                "10.0.0.1:80, 10.0.0.2:80",
                "a:80 : b:80, c:80",
            ],
        ),
        ("$upstream_response_time", &["-", "0.1", "0.1, 0.22 : -"]),
        (
            "$http_x_forwarded_for",
            &["-", "203.0.113.1", "203.0.113.1, 10.0.0.2"],
        ),
        ("$request", &["GET /a HTTP/1.1", "POST /a b HTTP/2.0", "-"]),
        ("$http_user_agent", &["-", "curl", "Mozilla/5.0 (X11) a"]),
        (
            "$sent_http_content_type",
            &["-", "text/html", "text/html; charset=utf-8"],
        ),
        ("$geo", &["", "New York", "Rome"]),
        (
            "[$time_local]",
            &[
                "[12/Mar/2026:06:25:01 +0000]",
                "[01/Feb/2026:00:00:00 -0130]",
            ],
        ),
    ];
    prop::sample::select(variables.to_vec())
}

/// A value and a way to write what stands between two.
type Written = (prop::sample::Index, prop::sample::Index);

/// Lines are made of known values: what is read is what was written, in every engine. A line of which that can't be known is
/// malformed, and none is where no text stands between
/// blanks, or one without a list or request.
#[test]
fn random_lines_of_random_patterns() {
    let dir = dir();
    let mut runner = TestRunner::new(Cases {
        cases: if are_all_wanted() { 400 } else { 12 },
        failure_persistence: None,
        ..Cases::default()
    });
    let columns = prop::collection::vec((variable(), 0..3_usize), 1..7);
    let lines = prop::collection::vec(prop::collection::vec(any::<Written>(), 8), 1..40);
    let tested = runner.run(&(columns, lines), |(columns, lines)| {
        let (mut texts, mut others) = (0, 0);
        let (mut pattern, mut keys) = ("$request_id".to_string(), vec!["request_id".to_string()]);
        for (at, ((variable, _), around)) in columns.iter().enumerate() {
            let is_text = ["$http_u", "$sent", "$geo"]
                .iter()
                .any(|text| variable.starts_with(text));
            // A text may take what a list begins with.
            let parts = ["$upstream", "$http_x", "$request"].map(|of| variable.starts_with(of));
            let is_other = parts.contains(&true) && *variable != "$request_time";
            if *around == 0 {
                texts += usize::from(is_text);
                others += usize::from(is_other);
            }
            let variable = match variable.trim_matches(['[', ']', '$']) {
                // Each is there once.
                name if columns[..at]
                    .iter()
                    .any(|((known, _), _)| known.trim_matches(['[', ']', '$']) == name) =>
                {
                    continue;
                }
                _ => variable,
            };
            pattern += &between(*around, variable);
            keys.extend(names_of(variable));
        }
        let mut text = String::new();
        let mut want: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (number, line) in lines.iter().enumerate() {
            let (mut row, mut seen) = (vec![number.to_string()], Vec::new());
            let mut written = number.to_string();
            for (((variable, values), around), (value, _)) in columns.iter().zip(line) {
                if seen.contains(variable) {
                    continue;
                }
                seen.push(variable);
                let value = *value.get(values);
                written += &between(*around, value);
                let value = value.trim_matches(['[', ']']);
                match *variable {
                    "$request" => match value.split_once(' ') {
                        None => row.extend(["", "", ""].map(String::from)),
                        Some((method, rest)) => {
                            let (path, protocol) = rest.rsplit_once(' ').unwrap();
                            row.extend([method, path, protocol].map(String::from));
                        }
                    },
                    _ => row.push(if value == "-" { "" } else { value }.into()),
                }
            }
            text += &written;
            text += if number % 3 == 0 { "\r\n" } else { "\n" };
            want.insert(row[0].clone(), row);
        }
        let path = write(dir.path(), "random.log", text.as_bytes());
        let mut query = Query::log(&pattern).unwrap().on_error(OnError::Skip);
        for key in &keys {
            query = query.key(&**key);
        }
        let mut first: Option<Vec<Vec<String>>> = None;
        for (way, config) in ways_in_small_blocks() {
            let input = Input::open([&path]).unwrap();
            let plan = query.plan(&input, &config).unwrap();
            let (answer, _) = fold(&input, &config, &plan).unwrap();
            let mut csv = Vec::new();
            let (names, format) = (answer.names(), ringfold::report::grid::GridFormat::Tsv);
            ringfold::report::grid::write_grid(names, &answer, format, None, &mut csv).unwrap();
            let csv = String::from_utf8(csv).unwrap();
            let rows: Vec<Vec<String>> = (csv.lines().skip(1))
                .map(|line| line.split('\t').map(String::from).collect())
                .collect();
            prop_assert_eq!(rows.len() as u64 + answer.skipped, lines.len() as u64);
            prop_assert!(
                texts > 1 || texts * others > 0 || answer.skipped == 0,
                "{}\n{}",
                pattern,
                text
            );
            for row in &rows {
                let (count, values) = row.split_last().unwrap();
                prop_assert_eq!(count, "1");
                prop_assert_eq!(values, &want[&row[0]][..], "{}\n{}", pattern, text);
            }
            let same = first.get_or_insert_with(|| rows.clone());
            prop_assert_eq!(&*same, &rows, "{:?}", way);
        }
        Ok(())
    });
    tested.unwrap();
}

/// A blank, a quote or a bar around what is between two others.
fn between(around: usize, text: &str) -> String {
    match around {
        0 => format!(" {text}"),
        1 => format!(" \"{text}\""),
        _ => format!("|{text}|"),
    }
}

fn names_of(variable: &str) -> Vec<String> {
    let name = variable.trim_matches(['[', ']', '$']);
    let names: &[&str] = match name {
        "request" => &["method", "path", "protocol"],
        "remote_addr" => &["host"],
        "time_local" => &["time"],
        "http_user_agent" => &["agent"],
        name => return vec![name.into()],
    };
    names.iter().map(|name| name.to_string()).collect()
}
