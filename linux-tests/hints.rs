//! Every hint of the program leads somewhere: it is taken from the message of a run that needs it, and the run that
//! follows it has the right answer.
//!
//! A new hint needs a row in [`ROWS`]. Tests hold the table against the variants of `Hint` and the sentences of
//! `src/cli/spell.rs`.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use proc_macro2::{TokenStream, TokenTree};

use crate::support::{Ended, dir, end, write};

/// A hint, and what comes of it.
struct Row {
    /// The variant of `Hint`, or `""` for other advice.
    hint: &'static str,
    /// Files of the directory in which both lines run.
    files: &'static [(&'static str, &'static str)],
    /// A line for the shell.
    run: &'static str,
    /// What it says on stderr, from the hint's beginning.
    says: &'static str,
    /// The line that follows the hint. `{}` stands for what `says` has in its first backticks, with the name of the first file
    /// in the place of `FILE`. Without backticks, each flag of `says` is in the line, or one of them after "or".
    then: &'static str,
    /// What that prints.
    answer: &'static str,
}

const ORDERS: (&str, &str) = ("orders.csv", "city,price\nBern,1.50\nOslo,2\nBern,2.25\n");

const LOG: (&str, &str) = (
    "access.log",
    "192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 1 \"-\" \"curl/8 (a b)\"\n\
     192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 404 1 \"-\" \"curl/8\"\n",
);

const ROWS: &[Row] = &[
    Row {
        hint: "",
        files: &[("f", "a$$1\nb$$2\na$$3\n")],
        run: "ringfold aggregate -d '$$' -k 1 -a sum:2 f",
        says: "`sed 's/[$][$]/\\x1f/g' FILE`",
        then: "{} | ringfold aggregate -d '\\x1f' -k 1 -a sum:2",
        answer: "key1,sum_2\na,4\nb,2\n",
    },
    Row {
        hint: "",
        files: &[("f", "a\\^'1\nb\\^'2\n")],
        run: "ringfold aggregate -d \"\\\\^'\" -k 1 f",
        says: "`sed 's/\\\\\\^['\\'']/\\x1f/g' FILE`",
        then: "{} | ringfold aggregate -d '\\x1f' -k 1",
        answer: "key1,count\na,1\nb,1\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -k city --save-partial p orders.csv && ringfold aggregate -k city p",
        says: "`ringfold merge`",
        then: "ringfold aggregate -k city --save-partial p orders.csv && {} p",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -H -k city -o y.csv.gz orders.csv",
        says: "`| gzip > y.csv.gz`",
        then: "ringfold aggregate -H -k city orders.csv {} && zcat y.csv.gz",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -H -k city -o y.xlsx orders.csv",
        says: "-f csv writes CSV to it all the same",
        then: "ringfold aggregate -H -k city -f csv -o y.xlsx orders.csv && cat y.xlsx",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[("f", "a;1\n")],
        run: "ringfold aggregate -o y.json f",
        says: "as -f 1brc",
        then: "ringfold aggregate -f 1brc -o y.json f && cat y.json",
        answer: "{a=1.0/1.0/1.0}\n",
    },
    Row {
        hint: "Encoded",
        files: &[ORDERS],
        run: "gzip -c orders.csv >f; ringfold aggregate --no-decompress -d , -k 1 f",
        says: "`zcat f | ringfold aggregate --no-decompress -d , -k 1 -`",
        then: "{} --no-header",
        answer: "key1,count\nBern,2\nOslo,1\ncity,1\n",
    },
    Row {
        hint: "Encoded",
        files: &[ORDERS],
        run: "iconv -t UTF-16 orders.csv >f.csv; ringfold aggregate -H -k city f.csv",
        says: "`iconv -f UTF-16 -t UTF-8 f.csv | ringfold aggregate -H -k city -`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "Piped",
        files: &[ORDERS],
        run: "tar cf t orders.csv; mv t orders.csv; ringfold aggregate -H -k city orders.csv",
        says: "`tar -xOf orders.csv | ringfold aggregate -H -k city -`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "Piped",
        files: &[ORDERS],
        run: "tar -cf t.tar orders.csv; cat t.tar | ringfold aggregate -k city",
        says: "`tar -xOf - | ringfold aggregate -k city`",
        then: "cat t.tar | {}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "Piped",
        files: &[("t.tar.gz", ""), ORDERS],
        run: "tar -czf t.tar.gz orders.csv; cat t.tar.gz | ringfold aggregate -k city",
        says: "`tar -xOf FILE | ringfold aggregate -k city`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "Encoded",
        files: &[("f.zip", "")],
        run: "printf 'PK\\003\\004\\024\\000\\000\\000' | ringfold aggregate -d , -k 1",
        says: "`unzip -p FILE | ringfold aggregate -d , -k 1`",
        then: "unzip() { printf 'a\nb\na\n'; }; {}",
        answer: "key1,count\na,2\nb,1\n",
    },
    Row {
        hint: "",
        files: &[("f", "")],
        run: "printf '\\050\\265\\057\\375\\000\\210\\051\\000\\000a\\nb\\na' >f; ringfold aggregate --memory 64M -d , -k 1 f",
        says: "`--decoder-memory 129M`",
        then: "ringfold aggregate --memory 64M {} -d , -k 1 f",
        answer: "key1,count\na,2\nb,1\n",
    },
    Row {
        hint: "Nuls",
        files: &[ORDERS],
        run: "(head -c 4096 /dev/zero; cat orders.csv) >t; mv t orders.csv; ringfold aggregate -H -k city orders.csv",
        says: "`tr -d '\\0' <orders.csv | ringfold aggregate -H -k city -`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "NulRun",
        files: &[ORDERS],
        run: "(cat orders.csv; head -c 4096 /dev/zero; echo Rome,1) >t; mv t orders.csv; ringfold aggregate -k city orders.csv",
        says: "`tr -d '\\0' <orders.csv | ringfold aggregate -k city -`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\nRome,1\n",
    },
    Row {
        hint: "NulRun",
        files: &[ORDERS],
        run: "(cat orders.csv; head -c 4096 /dev/zero; echo Rome,1) | gzip >o.csv.gz; ringfold aggregate -k city o.csv.gz",
        says: "`zcat o.csv.gz | tr -d '\\0' | ringfold aggregate -k city -`",
        then: "{}",
        answer: "city,count\nBern,2\nOslo,1\nRome,1\n",
    },
    Row {
        hint: "NulRun",
        files: &[ORDERS],
        run: "(cat orders.csv; head -c 4096 /dev/zero; echo Rome,1) >t; mv t orders.csv; ringfold aggregate -k city orders.csv",
        says: "`--on-error skip`, which leaves the record out",
        then: "ringfold aggregate -k city {} orders.csv",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "DecimalComma",
        files: &[("f", "a;2\na;1,5\n")],
        run: "ringfold aggregate f",
        says: "`--decimal-comma` reads commas before decimals",
        then: "ringfold aggregate {} f",
        answer: "{a=1.5/1.8/2.0}\n",
    },
    Row {
        hint: "CarriageReturns",
        files: &[("f.csv", "city,price\rBern,1.50\rOslo,2\r")],
        run: "ringfold aggregate -H -k city f.csv",
        says: "`tr '\\r' '\\n' <f.csv | ringfold aggregate -H -k city -`",
        then: "{}",
        answer: "city,count\nBern,1\nOslo,1\n",
    },
    Row {
        hint: "Names",
        files: &[ORDERS],
        run: "ringfold aggregate -k 1 -a sum:2 orders.csv",
        says: "`-H` takes the first line for the names of the columns",
        then: "ringfold aggregate -k 1 -a sum:2 {} orders.csv",
        answer: "city,sum_price\nBern,3.75\nOslo,2.00\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -k 1 orders.csv",
        says: "`-H` takes it for the names of the columns",
        then: "ringfold aggregate -k 1 {} orders.csv",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "Encoded",
        files: &[("f.json", "[{\"k\":\"a\"},\n {\"k\":\"b\"}]\n")],
        run: "ringfold aggregate -k k f.json",
        says: "`jq -c '.[]' f.json | ringfold aggregate --jsonl -k k -`",
        then: "{}",
        answer: "k,count\na,1\nb,1\n",
    },
    Row {
        hint: "Encoded",
        files: &[("f.jsonl", "{\n  \"k\": \"a\"\n}\n{\n  \"k\": \"a\"\n}\n")],
        run: "ringfold aggregate -k k f.jsonl",
        says: "`jq -c . f.jsonl | ringfold aggregate --jsonl -k k -`",
        then: "{}",
        answer: "k,count\na,2\n",
    },
    Row {
        hint: "",
        files: &[LOG],
        run: "ringfold aggregate -k 9 access.log",
        says: "`--log combined`",
        then: "ringfold aggregate {} -k status access.log",
        answer: "status,count\n200,1\n404,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "w3c.log",
            "#Version: 1.0\n#Fields: date status\n2026-04-28\t200\n2026-04-29\t404\n",
        )],
        run: "ringfold aggregate -k 2 w3c.log",
        says: "`--comment '#' -d '\\t'`",
        then: "ringfold aggregate {} -k 2 w3c.log",
        answer: "key1,count\n200,1\n404,1\n",
    },
    Row {
        hint: "",
        files: &[],
        run: "mkdir 'a b'; printf 'k,v\\na,1\\n' >'a b/f.csv'; ringfold aggregate -k k 'a b'",
        says: "`ringfold aggregate -k k 'a b'/*`",
        then: "{}",
        answer: "k,count\na,1\n",
    },
    Row {
        hint: "",
        files: &[],
        run: "mkdir -p a/b; printf 'k,v\\na,1\\n' >a/b/f.csv; ringfold aggregate -k k a",
        says: "`find a -type f -exec ringfold aggregate -k k {} +`",
        then: "{}",
        answer: "k,count\na,1\n",
    },
    Row {
        hint: "Delimiter",
        files: &[("f", "a,1\nb,2\n")],
        run: "ringfold aggregate -f 1brc f",
        says: "`-d ','`",
        then: "ringfold aggregate {} f",
        answer: "{a=1.0/1.0/1.0, b=2.0/2.0/2.0}\n",
    },
    Row {
        hint: "Names",
        files: &[("f", "city;mean\na;1\n")],
        run: "ringfold aggregate -f 1brc f",
        says: "`-H` takes the first line for the names of the columns",
        then: "ringfold aggregate {} f",
        answer: "{a=1.0/1.0/1.0}\n",
    },
    Row {
        hint: "HeaderAndDelimiter",
        files: &[("f", "city\tmean\na\t1\n")],
        run: "ringfold aggregate -f 1brc f",
        says: "`-d '\\t' -H`, which takes the first line for the names of the columns",
        then: "ringfold aggregate {} f",
        answer: "{a=1.0/1.0/1.0}\n",
    },
    Row {
        hint: "Columns",
        files: &[(
            "f",
            "city,country,mean\nKiel,Germany,1\nBern,Switzerland,2\n",
        )],
        run: "ringfold aggregate -f 1brc f",
        says: "`-k 1 -a mean:3`, with `-H`",
        then: "ringfold aggregate -H {} f",
        answer: "city,mean_mean\nBern,2.00\nKiel,1.00\n",
    },
    Row {
        hint: "SingleLine",
        files: &[("f.csv", "k,v\nx,y\n\"a\nb,\"c\nd,e\nf,g\n")],
        run: "ringfold aggregate -H -k k --on-error skip --range 1/2 --save-partial p f.csv",
        says: "`--single-line`",
        then: "for i in 1 2; do ringfold aggregate -q {} -H -k k --on-error skip --range $i/2 --save-partial $i f.csv; done; ringfold merge 1 2",
        answer: "k,count\nd,1\nf,1\nx,1\n",
    },
    Row {
        hint: "NullValue",
        files: &[("f.csv", "k,v\na,1\na,N/A\n")],
        run: "ringfold aggregate -H -k k -a sum:v,count:v f.csv",
        says: "`--null-value 'N/A'`",
        then: "ringfold aggregate -H -k k -a sum:v,count:v {} f.csv",
        answer: "k,sum_v,count_v\na,1,1\n",
    },
    Row {
        hint: "Float",
        files: &[("f.csv", "k,v\na,1\na,2.5e-300\n")],
        run: "ringfold aggregate -H -k k -a sum:v f.csv",
        says: "`--float`",
        then: "ringfold aggregate -H -k k -a sum:v {} f.csv",
        answer: "k,sum_v\na,1\n",
    },
    Row {
        hint: "NotFinite",
        files: &[("f.csv", "v\n1\nNaN\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`--float` takes it for a number, `--null-value=NaN` for no value",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\nnan\n",
    },
    Row {
        hint: "NotFinite",
        files: &[("f.csv", "v\n1\n-inf\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "--null-value=-inf",
        then: "ringfold aggregate -H -a sum:v --null-value=-inf f.csv",
        answer: "sum_v\n1\n",
    },
    Row {
        hint: "DecimalComma",
        files: &[("f.csv", "k;v\na;1,5\n")],
        run: "ringfold aggregate -d ';' -H -a sum:v f.csv",
        says: "`--decimal-comma` reads commas before decimals",
        then: "ringfold aggregate -d ';' -H -a sum:v {} f.csv",
        answer: "sum_v\n1.5\n",
    },
    Row {
        hint: "DecimalPoint",
        files: &[("f.csv", "v\n1.5\n")],
        run: "ringfold aggregate --decimal-comma -H -a sum:v f.csv",
        says: "if a point stands before decimals",
        then: "ringfold aggregate -H -a sum:v f.csv",
        answer: "sum_v\n1.5\n",
    },
    Row {
        hint: "CommaOrGroups",
        files: &[("f.tsv", "k\tv\na\t1,234\n")],
        run: "ringfold aggregate -H -a sum:v f.tsv",
        says: "`--decimal-comma` takes the comma for a decimal point",
        then: "ringfold aggregate -H -a sum:v {} f.tsv",
        answer: "sum_v\n1.234\n",
    },
    Row {
        hint: "Sign",
        files: &[("f.csv", "v\n$5\n$7.50\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`sed 's/[$]//g' FILE`",
        then: "{} | ringfold aggregate -d , -H -a sum:v",
        answer: "sum_v\n12.50\n",
    },
    Row {
        hint: "Sign",
        files: &[("f.csv", "v\n12%\n7.5%\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`sed 's/%//g' FILE`",
        then: "{} | ringfold aggregate -d , -H -a sum:v",
        answer: "sum_v\n19.5\n",
    },
    Row {
        hint: "Amount",
        files: &[("f", "k;v\na;(1,234.50)\n")],
        run: "ringfold aggregate -H -a sum:v f",
        says: "separators of thousands and parentheses have to be taken out before (docs/not-for.md)",
        then: "sed 's/,//g; s/[(]/-/; s/[)]//' f | ringfold aggregate -H -a sum:v",
        answer: "sum_v\n-1234.50\n",
    },
    Row {
        hint: "Times",
        files: &[("f.csv", "k,day\na,2026-02-01\na,01/Mar/2026\n")],
        run: "ringfold aggregate -H -k k -a max:day f.csv",
        says: "`@time`",
        then: "ringfold aggregate -H -k k -a max:day{} f.csv",
        answer: "k,max_day\na,01/Mar/2026\n",
    },
    Row {
        hint: "Quotes",
        files: &[],
        run: "seq 30 | sed 's/.*/a;1/' >f; echo '\"a\";\"2\"' >>f; ringfold aggregate -k 1 -a sum:2 f",
        says: "`--quote '\"'`",
        then: "ringfold aggregate {} -k 1 -a sum:2 f",
        answer: "key1,sum_2\na,32\n",
    },
    Row {
        hint: "Quotes",
        files: &[("f", "\"a,b\",1\n\"c\",2\n")],
        run: "ringfold aggregate --quote none -k 1 f",
        says: "`--quote '\"'`",
        then: "ringfold aggregate {} -k 1 f",
        answer: "key1,count\n\"a,b\",1\nc,1\n",
    },
    Row {
        hint: "Quote",
        files: &[("f.csv", "k,v\na,\"x\nb,2\nc,3\n")],
        run: "ringfold aggregate -H -k v f.csv",
        says: "`--on-error skip`",
        then: "ringfold aggregate -H -k v {} f.csv",
        answer: "v,count\n2,1\n3,1\n",
    },
    Row {
        hint: "Quote",
        files: &[("f.csv", "k,v\n\"x\" y,1\nb,2\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`--quote none`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n3\n",
    },
    Row {
        hint: "Escape",
        files: &[("f.csv", "k,v\n\"2\\\" wide\",1\nb,2\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`--escape '\\'`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n3\n",
    },
    Row {
        hint: "Escape",
        files: &[("f.csv", "k,v\n\"a \\\", b\",1\nb,2\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`--escape '\\'`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n3\n",
    },
    Row {
        hint: "Trim",
        files: &[("f.csv", "k,v\na, \"1\"\nb, \"2\"\n")],
        run: "ringfold aggregate -q -H -a sum:v f.csv",
        says: "`--trim`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n3\n",
    },
    Row {
        hint: "Trim",
        files: &[("f.csv", "k,v\na, \"1, 2\"\nb, \"2\"\n")],
        run: "ringfold aggregate -q -H -k v f.csv",
        says: "`--trim`",
        then: "ringfold aggregate -H -k v {} f.csv",
        answer: "v,count\n\"1, 2\",1\n2,1\n",
    },
    Row {
        hint: "",
        files: &[("f.csv", "k,v\na, \"1\"\nb, \"2\"\n")],
        run: "ringfold aggregate -H -k v f.csv",
        says: "`--trim`",
        then: "ringfold aggregate -H -k v {} f.csv",
        answer: "v,count\n1,1\n2,1\n",
    },
    Row {
        hint: "MaxRecord",
        files: &[],
        run: "(echo k,v; printf '\"'; seq 200000; printf '\",1\\n') >f.csv; ringfold aggregate -H -a sum:v f.csv",
        says: "`--max-record 4194304`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n1\n",
    },
    Row {
        hint: "MaxRecord",
        files: &[],
        run: "(echo k,v; echo a,\\\"1; seq 200000 | sed 's/$/,1/') >f.csv; ringfold aggregate -H -a sum:v f.csv",
        says: "`--on-error skip`",
        then: "ringfold aggregate -H -a sum:v {} f.csv",
        answer: "sum_v\n200000\n",
    },
    Row {
        hint: "LoneReturn",
        files: &[("f.csv", "k,v\na,1\rb,2\r\nc,3\r\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`tr '\\r' '\\n' <FILE`",
        then: "{} | ringfold aggregate -H -a sum:v",
        answer: "sum_v\n6\n",
    },
    Row {
        hint: "LastDelimiter",
        files: &[("f.csv", "k,v\na,1,\nb,2,\n")],
        run: "ringfold aggregate -H -a sum:v f.csv",
        says: "`sed 's/,$//' FILE`",
        then: "{} | ringfold aggregate -H -a sum:v",
        answer: "sum_v\n3\n",
    },
    Row {
        hint: "RowNames",
        files: &[("f", "k\tv\n1\ta\t5\n2\tb\t6\n")],
        run: "ringfold aggregate -H -a sum:v f",
        says: "`sed '1s/^/row\\t/' FILE`",
        then: "{} | ringfold aggregate -H -a sum:v",
        answer: "sum_v\n11\n",
    },
    Row {
        hint: "DoubledDelimiter",
        files: &[("f", "a||1\nb||2\na||3\n")],
        run: "ringfold aggregate -k 1 -a sum:2 f",
        says: "`sed 's/||/|/g' FILE`",
        then: "{} | ringfold aggregate -k 1 -a sum:2",
        answer: "key1,sum_2\na,4\nb,2\n",
    },
    Row {
        hint: "CommentedHeader",
        files: &[("f", "##v4\n#CHROM\tPOS\nchr1\t14\nchr1\t22\n")],
        run: "ringfold aggregate -H --comment '#' -k 1 f",
        says: "`--skip-lines 1`",
        then: "ringfold aggregate -H {} -k 1 f",
        answer: "#CHROM,count\nchr1,2\n",
    },
    Row {
        hint: "",
        files: &[("f.csv", "k,v\r\r\na,1\r\r\n")],
        run: "ringfold aggregate -H -k v f.csv",
        says: "`tr -d '\\r' <FILE`",
        then: "{} | ringfold aggregate -H -k v",
        answer: "v,count\n1,1\n",
    },
    Row {
        hint: "",
        files: &[("f.csv", "k,v\na,1\nk,v\n")],
        run: "ringfold aggregate -H -k k f.csv",
        says: "`--repeated-header keep`",
        then: "ringfold aggregate -H -k k {} f.csv",
        answer: "k,count\na,1\nk,1\n",
    },
    Row {
        hint: "",
        files: &[("f.csv", "k,v\na,1\nk,v\nk,v\n")],
        run: "ringfold aggregate -H -k k f.csv",
        says: "`--repeated-header keep`",
        then: "ringfold aggregate -H -k k {} f.csv",
        answer: "k,count\na,1\nk,2\n",
    },
    Row {
        hint: "",
        files: &[("f.tsv", "k\tv\n\"x\"y\t1\n")],
        run: "ringfold aggregate -H -k k f.tsv",
        says: "`--quote none`",
        then: "ringfold aggregate -H -k k {} f.tsv",
        answer: "k,count\n\"\"\"x\"\"y\",1\n",
    },
    Row {
        hint: "",
        files: &[("f", "abc\ndef\n")],
        run: "ringfold aggregate -k 1 f",
        says: "`-d ','`",
        then: "ringfold aggregate -k 1 {} f",
        answer: "key1,count\nabc,1\ndef,1\n",
    },
    Row {
        hint: "",
        files: &[("f", "a,b;c\n1,2;3\n")],
        run: "ringfold aggregate -k 1 f",
        says: "`-d ';'`",
        then: "ringfold aggregate -k 1 {} f",
        answer: "key1,count\n\"1,2\",1\n\"a,b\",1\n",
    },
    Row {
        hint: "",
        files: &[("f", "{\"a\":1}\n{\"a\":2}\n")],
        run: "ringfold aggregate -k a f",
        says: "--jsonl",
        then: "ringfold aggregate --jsonl -k a f",
        answer: "a,count\n1,1\n2,1\n",
    },
    Row {
        hint: "",
        files: &[("f.csv", "city;price\nBern;1,5\nOslo;2\n")],
        run: "ringfold aggregate -H -k city f.csv",
        says: "`-d ';'`",
        then: "ringfold aggregate -H -k city {} f.csv",
        answer: "city,count\nBern,1\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "trips.csv",
            "city,route\nBern,\"Kiel,Oslo\nOslo,Rom\nRom,Bern\"\nKiel,none\n",
        )],
        run: "for i in 1 2; do ringfold aggregate -k city --range $i/2 --save-partial $i trips.csv; done; ringfold merge 1 2",
        says: "`--range 2/2 --begin 46`",
        then: "ringfold aggregate -k city {} --save-partial 2 trips.csv; ringfold merge 1 2",
        answer: "city,count\nBern,1\nKiel,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "trips.csv",
            "city,route\nBern,\"Kiel,Oslo\nOslo,Rom\nRom,Bern\"\nKiel,none\n",
        )],
        run: "for i in 1 2 3 4; do ringfold aggregate -k city --range $i/4 --save-partial $i trips.csv; done; \
              ringfold merge --save-partial late 3 4 2>/dev/null; ringfold merge 1 2 late",
        says: "`--range 3/4 --begin 46`, and merge it anew with the other parts of that partial",
        then: "ringfold aggregate -k city {} --save-partial 3 trips.csv; ringfold merge 1 2 3 4",
        answer: "city,count\nBern,1\nKiel,1\n",
    },
    Row {
        hint: "Begin",
        files: &[("g.csv", "k,v\na,b\nc,d\n\"p\nq,s,t\",r\nx,y\n")],
        run: "ringfold aggregate -k k --range 2/3 --begin quoted g.csv",
        says: "`--begin unquoted`",
        then: "ringfold aggregate -q -k k --range 2/3 {} g.csv",
        answer: "k,count\n\"p\nq,s,t\",1\n",
    },
    Row {
        hint: "Begin",
        files: &[("f.csv", "k,v\na,\"b\nc,\"\"d\"\"\nb\"\nc,d\ne,f,g\n")],
        run: "ringfold aggregate -k k --range 4/10 f.csv",
        says: "`--begin quoted`",
        then: "ringfold aggregate -q -k k --range 4/10 {} f.csv",
        answer: "k,count\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -H -k city --single-line --range 1/2 --save-partial p orders.csv; ringfold merge p",
        says: "--allow-gaps",
        then: "ringfold merge --allow-gaps p",
        answer: "city,count\nBern,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "f.csv",
            "k,v\naaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa,1\n",
        )],
        run: "ringfold aggregate --max-record 64 -H -a sum:v f.csv",
        says: "--max-record",
        then: "ringfold aggregate --max-record 1M -H -a sum:v f.csv",
        answer: "sum_v\n1\n",
    },
    Row {
        hint: "",
        files: &[],
        run: "seq 100000 >f; ringfold aggregate -d , -k 1 --memory 1M --spill-dir nowhere f",
        says: "--spill-dir",
        then: "ringfold aggregate -d , -k 1 --memory 1M --spill-dir . f | wc -l",
        answer: "100001\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold count --io-timeout 0s orders.csv",
        says: "raise it, or leave it out",
        then: "ringfold count --io-timeout 30s orders.csv",
        answer: "4 38 orders.csv\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold count --engine mmap --direct orders.csv",
        says: "leave one of them out",
        then: "ringfold count --engine mmap orders.csv",
        answer: "4 38 orders.csv\n",
    },
    Row {
        hint: "",
        files: &[(
            "f",
            "www.ex.test:443 192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n",
        )],
        run: "ringfold aggregate --log combined -k host f",
        says: "`--log vhost_combined`",
        then: "ringfold aggregate {} -k host f",
        answer: "host,count\n192.0.2.1,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "f",
            "Mar  2 06:25:01 web1: 192.0.2.1 - - [02/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 5\n",
        )],
        run: "ringfold aggregate --log common -k host f",
        says: "`--log '$prefix %h %l %u %t \"%r\" %>s %b'`",
        then: "ringfold aggregate {} -k host f",
        answer: "host,count\n192.0.2.1,1\n",
    },
    Row {
        hint: "",
        files: &[(
            "f",
            "192.0.2.1 - - [12/Mar/2026:06:25:01 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl\"\n\
             192.0.2.1 - - [12/Mar/2026:06:25:02 +0000] \"GET / HTTP/1.1\" 200 7 \"-\" \"a b c\"\n",
        )],
        run: "ringfold aggregate -k 9 f",
        says: "`--log combined`",
        then: "ringfold aggregate {} -k status -a sum:bytes f",
        answer: "status,sum_bytes\n200,12\n",
    },
    Row {
        hint: "QuotedTime",
        files: &[("f.csv", "d,v\n2024-01-02,1\n2023-01-02,2\n")],
        run: "ringfold aggregate -k v --where 'd >= 2024' f.csv",
        says: "a date in single quotes, as '2024-05-01', is compared as a time",
        then: "ringfold aggregate -k v --where \"d >= '2024-01-01'\" f.csv",
        answer: "v,count\n1,1\n",
    },
    Row {
        hint: "QuotedTime",
        files: &[("f.csv", "d,v\n2024-01-02,1\n2023-01-02,2\n")],
        run: "ringfold aggregate -k v -a first:d --having 'first_d >= 2024' f.csv",
        says: "a date in single quotes, as '2024-05-01', is compared as a time",
        then: "ringfold aggregate -k v -a first:d --having \"first_d >= '2024-01-01'\" f.csv",
        answer: "v,first_d\n1,2024-01-02\n",
    },
    Row {
        hint: "",
        files: &[("f.tsv", "##format=v4\n#CHROM\tPOS\nchr1\t14\nchr1\t15\n")],
        run: "ringfold aggregate -k '#CHROM' f.tsv",
        says: "`--comment '##'`",
        then: "ringfold aggregate {} -k '#CHROM' f.tsv",
        answer: "#CHROM,count\nchr1,2\n",
    },
    Row {
        hint: "",
        files: &[("f", "# from a station\n\ncity;v\nB;1\n")],
        run: "ringfold aggregate -k city f",
        says: "`--comment '#'`",
        then: "ringfold aggregate {} -k city f",
        answer: "city,count\nB,1\n",
    },
    Row {
        hint: "",
        files: &[("f", "a,b\r\n1,2\rx,y\r\n3,4\r\n")],
        run: "cat f | ringfold aggregate -k a",
        says: "`-d ','` names it, if that is right",
        then: "tr '\\r' '\\n' <f | ringfold aggregate {} -k a",
        answer: "a,count\n1,1\n3,1\nx,1\n",
    },
    Row {
        hint: "LoneReturn",
        files: &[("f.csv", "a,b\r\n1,2\rx,y\r\n")],
        run: "ringfold aggregate -k a f.csv",
        says: "`tr '\\r' '\\n' <FILE`",
        then: "{} | ringfold aggregate -k a",
        answer: "a,count\n1,1\nx,1\n",
    },
    Row {
        hint: "Escape",
        files: &[("f", "k,v\n\"2\\\" wide\",1\n\"b\",2\n")],
        run: "cat f | ringfold aggregate -k k -a sum:v",
        says: "`--escape '\\'`",
        then: "cat f | ringfold aggregate {} -k k -a sum:v",
        answer: "k,sum_v\n\"2\"\" wide\",1\nb,2\n",
    },
    Row {
        hint: "NulRun",
        files: &[LOG],
        run: "(cat access.log; head -c 4096 /dev/zero) >f; ringfold aggregate --log combined -k host f",
        says: "`tr -d '\\0' <f | ringfold aggregate --log combined -k host -`",
        then: "{}",
        answer: "host,count\n192.0.2.1,2\n",
    },
    Row {
        hint: "NulRun",
        files: &[ORDERS],
        run: "(cat orders.csv; head -c 3145728 /dev/zero; echo Rome,1) >f; cat f | ringfold aggregate -k city",
        says: "`tr -d '\\0' | ringfold aggregate -k city`",
        then: "cat f | {}",
        answer: "city,count\nBern,2\nOslo,1\nRome,1\n",
    },
    // What is fetched isn't the matter of a test: it is a file.
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -k city https://a.example/orders.csv",
        says: "`curl -sSfL https://a.example/orders.csv | ringfold aggregate -k city -`",
        then: "curl() { cat orders.csv; }; {}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -k city s3://a/orders.csv",
        says: "`aws s3 cp s3://a/orders.csv - | ringfold aggregate -k city -`",
        then: "aws() { cat orders.csv; }; {}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
    Row {
        hint: "",
        files: &[ORDERS],
        run: "ringfold aggregate -k city gs://a/orders.csv",
        says: "`gcloud storage cat gs://a/orders.csv | ringfold aggregate -k city -`",
        then: "gcloud() { cat orders.csv; }; {}",
        answer: "city,count\nBern,2\nOslo,1\n",
    },
];

/// Advice that needs a kernel, a device or a limit which a test of the program alone doesn't have.
const NEEDS_MACHINE: &[&str] = &[
    "leave it out",
    "raise it, or lower --rings",
    "read it with another engine",
    "lower --buffers, --queue-depth or --block-size",
    "lower --rings, or raise the limit on processes (ulimit -u)",
    "lower --threads",
    "name another directory by --spill-dir, or raise --memory",
    "choose another engine",
    "leave it out or try hugetlb",
    "raise sysctl vm.nr_hugepages, lower --buffers or --block-size, or leave it out",
    "lower --buffers or --block-size, or leave it out",
    "leave it out, or try --direct",
    "leave it out, or load its driver with poll queues (nvme.poll_queues=N)",
    "lower it",
    "name another processor, or none",
    "leave out ={workers}",
    "raise that, lower --buffers or --block-size, or leave it out",
    "raise ulimit -n, or leave it out",
    "name other processors",
    "lower --threads, or raise the limit on processes (ulimit -u)",
];

#[test]
fn who_follows_a_hint_gets_the_answer() {
    for row in ROWS {
        let (said, dir) = said(row);
        assert!(said.stderr.contains(row.says), "{}\n{said:?}", row.run);
        let flags = |line: &str| -> Vec<String> {
            let is_flag = |word: &&str| word.starts_with("--");
            line.split_whitespace()
                .filter(is_flag)
                .map(String::from)
                .collect()
        };
        let follows = match row.says.split('`').nth(1) {
            Some(typed) => row.then.contains("{}") && !typed.is_empty(),
            None => flags(row.says)
                .iter()
                .all(|flag| flags(row.then).contains(flag)),
        };
        assert!(follows, "the line doesn't follow the hint: {}", row.then);
        let typed = row.says.split('`').nth(1).unwrap_or_default();
        let first = row.files.first().map_or("", |(name, _)| name);
        let typed = typed.replace("FILE", first);
        let then = row.then.replace("{}", &typed);
        let ended = shell(dir.path(), &then);
        let (code, stdout) = (ended.code, String::from_utf8_lossy(&ended.stdout));
        assert_eq!(
            (code, &*stdout),
            (Some(0), row.answer),
            "{then}\n{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains(row.says), "{then}: {}", ended.stderr);
    }
}

/// No pipe is offered to what reads none.
#[test]
fn where_no_pipe_is_read_there_is_no_hint() {
    let dir = dir();
    write(dir.path(), ORDERS.0, ORDERS.1.as_bytes());
    for line in [
        "tune s3://a/orders.csv",
        "bench s3://a/orders.csv",
        "aggregate -k city --queries s3://a/queries orders.csv",
        "aggregate -k city --queries . orders.csv",
        "aggregate -k city --lookup s3://a/orders.csv --on city orders.csv",
        "aggregate -k city --range 1/2 s3://a/orders.csv",
        "aggregate -k city --range=1/2 s3://a/orders.csv",
    ] {
        let ended = shell(dir.path(), &format!("ringfold {line}"));
        assert_ne!(ended.code, Some(0), "{line}");
        assert_eq!(ended.stdout, b"", "{line}");
        let has_cause = ["ENOENT]\n", "EISDIR]\n"]
            .iter()
            .any(|end| ended.stderr.ends_with(end));
        assert!(has_cause, "{line}: {}", ended.stderr);
    }
}

#[test]
fn every_kind_of_hint_is_followed() {
    let mut variants = variants("src/refusal.rs", "Hint");
    variants.extend(self::variants(
        "crates/read/src/error/refusal.rs",
        "Foreign",
    ));
    assert!(variants.len() > 5, "{variants:?}");
    for variant in &variants {
        let has_row = ROWS.iter().any(|row| row.hint == variant);
        assert!(has_row, "no row follows `Hint::{variant}`");
    }
    for row in ROWS {
        let is_known = row.hint.is_empty() || variants.iter().any(|variant| variant == row.hint);
        assert!(is_known, "there is no `Hint::{}`", row.hint);
    }
}

#[test]
fn every_advice_is_followed() {
    let sentences = sentences("src/cli/spell.rs");
    assert!(sentences.len() > 20, "{sentences:?}");
    let said: Vec<String> = ROWS.iter().map(|row| said(row).0.stderr).collect();
    let known = |exempt: &&&str| sentences.iter().any(|sentence| sentence == **exempt);
    assert!(
        NEEDS_MACHINE.iter().all(|exempt| known(&exempt)),
        "there is no such advice any more"
    );
    let missing: Vec<_> = (sentences.iter())
        .filter(|sentence| !NEEDS_MACHINE.contains(&sentence.as_str()))
        .filter(|sentence| !said.iter().any(|said| has_form(said, sentence)))
        .collect();
    assert!(missing.is_empty(), "no row has these: {missing:#?}");
}

/// What the first line of a row says, and the directory in which it ran.
fn said(row: &Row) -> (Ended, tempfile::TempDir) {
    let dir = dir();
    for (name, text) in row.files {
        write(dir.path(), name, text.as_bytes());
    }
    (shell(dir.path(), row.run), dir)
}

/// Runs a line in a directory, where `ringfold` is the program.
fn shell(dir: &Path, line: &str) -> Ended {
    let program = crate::support::program();
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    let mut command = Command::new("sh");
    let command = command.args(["-c", line]).current_dir(dir);
    end(command.env("PATH", path).stdin(Stdio::null()))
}

/// Whether a text has the parts of a format string, one after the other.
fn has_form(text: &str, format: &str) -> bool {
    let mut rest = text;
    format.split(['{', '}']).step_by(2).all(|part| {
        let found = rest.find(part).map(|at| at + part.len());
        rest = &rest[found.unwrap_or(0)..];
        found.is_some()
    })
}

fn tokens(path: &str) -> Vec<TokenTree> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = fs::read_to_string(path).unwrap();
    text.parse::<TokenStream>().unwrap().into_iter().collect()
}

/// The variants of an enum.
fn variants(path: &str, name: &str) -> Vec<String> {
    let tokens = tokens(path);
    let is_enum = |pair: &[TokenTree]| pair[0].to_string() == "enum" && pair[1].to_string() == name;
    let at = tokens.windows(2).position(is_enum).unwrap();
    let TokenTree::Group(body) = &tokens[at + 2] else {
        panic!("{name} has no variants");
    };
    let idents = body.stream().into_iter().filter_map(|token| match token {
        TokenTree::Ident(ident) => Some(ident.to_string()),
        _ => None,
    });
    idents.collect()
}

/// The strings of a file's code that are more than a word; those of its tests and attributes aside.
fn sentences(path: &str) -> Vec<String> {
    let mut found = Vec::new();
    gather(tokens(path), &mut found);
    found.retain(|text| {
        let words = text.split(['{', '}']).step_by(2).collect::<String>();
        let letters = |word: &str| word.chars().any(char::is_alphabetic);
        words
            .split_whitespace()
            .filter(|word| letters(word))
            .count()
            > 1
    });
    found
}

fn gather(tokens: Vec<TokenTree>, found: &mut Vec<String>) {
    let mut before = [String::new(), String::new()];
    for token in tokens {
        let text = token.to_string();
        let is_test = before[0] == "mod" && before[1] == "tests";
        let is_attribute = before[1] == "#" || before[0] == "#" && before[1] == "!";
        match token {
            TokenTree::Group(group) if !is_test && !is_attribute => {
                gather(group.stream().into_iter().collect(), found);
            }
            TokenTree::Literal(_) if text.starts_with('"') => found.push(unescaped(&text)),
            _ => {}
        }
        before = [std::mem::take(&mut before[1]), text];
    }
}

/// A string from its literal.
fn unescaped(literal: &str) -> String {
    let mut chars = literal[1..literal.len() - 1].chars().peekable();
    let mut text = String::new();
    while let Some(char) = chars.next() {
        match (char, char == '\\') {
            (_, true) => match chars.next() {
                Some('\n') => while chars.next_if(|char| char.is_whitespace()).is_some() {},
                Some('n') => text.push('\n'),
                Some('t') => text.push('\t'),
                Some(char) => text.push(char),
                None => {}
            },
            (char, false) => text.push(char),
        }
    }
    text
}
