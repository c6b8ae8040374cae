use crate::output::file::*;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
use tempfile::tempdir;

const BOTH: [Nameless; 2] = [Nameless::Try, Nameless::Skip];

fn output(path: &Path, nameless: Nameless) -> Output {
    let (file, pending) = open_target(path, nameless).unwrap();
    Output::new(path.to_owned(), file, pending)
}

fn entries(directory: &Path) -> Vec<OsString> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    names
}

fn inner(error: &io::Error) -> &OutputError {
    error.get_ref().unwrap().downcast_ref().unwrap()
}

#[test]
fn a_new_file_appears_whole_at_the_end() {
    for nameless in BOTH {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out");
        let mut out = output(&path, nameless);
        write!(out, "one ").unwrap();
        out.write_all(&[b'x'; 3 * BUFFER_BYTES]).unwrap();
        out.flush().unwrap();
        assert!(!path.exists());
        write!(out, " two").unwrap();
        out.finish().unwrap();
        assert_eq!(entries(dir.path()), ["out"]);
        let text = fs::read(&path).unwrap();
        assert_eq!(text.len(), 8 + 3 * BUFFER_BYTES);
        assert!(text.starts_with(b"one x") && text.ends_with(b"x two"));
    }
}

#[test]
fn an_unfinished_file_leaves_nothing() {
    for nameless in BOTH {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out");
        let mut out = output(&path, nameless);
        out.write_all(&[b'x'; 3 * BUFFER_BYTES]).unwrap();
        drop(out);
        assert!(entries(dir.path()).is_empty());

        fs::write(&path, "old").unwrap();
        let mut out = output(&path, nameless);
        out.write_all(&[b'x'; 3 * BUFFER_BYTES]).unwrap();
        drop(out);
        assert_eq!(entries(dir.path()), ["out"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }
}

#[test]
fn a_nameless_file_has_no_name_meanwhile() {
    let dir = tempdir().unwrap();
    let mut out = output(&dir.path().join("out"), Nameless::Try);
    out.write_all(b"x").unwrap();
    out.flush().unwrap();
    // A filesystem without O_TMPFILE shows the temporary name instead.
    let named = usize::from(out.pending.as_ref().unwrap().temporary.is_some());
    assert_eq!(entries(dir.path()).len(), named);
}

#[test]
fn a_replaced_file_keeps_its_permissions() {
    for nameless in BOTH {
        for mode in [0o600, 0o640, 0o755, 0o666] {
            let dir = tempdir().unwrap();
            let path = dir.path().join("out");
            fs::write(&path, "old and longer").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            let mut out = output(&path, nameless);
            write!(out, "new").unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"old and longer");
            out.finish().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
            assert_eq!(entries(dir.path()), ["out"]);
        }
    }
}

#[test]
fn a_new_file_has_the_permissions_that_others_get() {
    for nameless in BOTH {
        let dir = tempdir().unwrap();
        output(&dir.path().join("ours"), nameless).finish().unwrap();
        fs::write(dir.path().join("theirs"), "").unwrap();
        let mode = |name| fs::metadata(dir.path().join(name)).unwrap().mode();
        assert_eq!(mode("ours"), mode("theirs"));
    }
}

#[test]
fn a_file_that_appeared_meanwhile_is_replaced() {
    for nameless in BOTH {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out");
        let mut out = output(&path, nameless);
        write!(out, "ours").unwrap();
        fs::write(&path, "theirs").unwrap();
        out.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"ours");
        assert_eq!(entries(dir.path()), ["out"]);
    }
}

#[test]
fn symbolic_links_stay_and_are_followed() {
    let dir = tempdir().unwrap();
    fs::create_dir(dir.path().join("sub")).unwrap();
    let (link, file) = (dir.path().join("link"), dir.path().join("sub/file"));
    symlink("sub/hop", &link).unwrap();
    symlink("file", dir.path().join("sub/hop")).unwrap();
    let error = Output::open(&link).unwrap_err();
    assert_eq!(
        inner(&error).errno,
        Errno::NOENT,
        "a link to a missing file"
    );
    fs::write(&file, "old").unwrap();
    let mut out = Output::open(&link).unwrap();
    write!(out, "new").unwrap();
    out.finish().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "new");
    assert!(link.is_symlink() && dir.path().join("sub/hop").is_symlink());
    symlink("round", dir.path().join("round")).unwrap();
    let error = Output::open(&dir.path().join("round")).unwrap_err();
    assert_eq!(inner(&error).errno, Errno::LOOP);
}

#[test]
fn a_name_that_is_reserved_goes_to_whoever_is_first() {
    for nameless in BOTH {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out");
        let [mut one, mut two] = [(); 2].map(|()| output(&path, nameless));
        assert!(one.reserve() && two.reserve());
        write!(one, "one").unwrap();
        write!(two, "two").unwrap();
        two.finish().unwrap();
        assert_eq!(inner(&one.finish().unwrap_err()).errno, Errno::EXIST);
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(entries(dir.path()), ["out"]);
        assert!(!output(&path, nameless).reserve());
    }
}

#[test]
fn bits_that_run_programs_as_their_owner_are_dropped() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("out");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    output(&path, Nameless::Try).finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o755);
}

/// As root, because only root may give files away.
#[test]
fn in_a_shared_directory_a_file_of_somebody_else_isnt_given_the_answer() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    for (mode, owner) in [(0o777, 0), (0o1777, 0), (0o775, 0), (0o755, 1234)] {
        let dir = tempdir().unwrap();
        let path = dir.path().join("out");
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(mode)).unwrap();
        fs::write(&path, "theirs").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        std::os::unix::fs::chown(&path, Some(1234), Some(1234)).unwrap();
        match Output::open(&path) {
            Ok(out) => {
                out.finish().unwrap();
                let new = fs::metadata(&path).unwrap();
                let got = (new.uid(), new.gid());
                assert_eq!(got, (owner, owner), "{mode:o}");
                assert_eq!(new.mode() & 0o022 != 0, owner != 0, "{mode:o}");
            }
            // What the kernel protects.
            Err(error) => {
                assert_eq!(inner(&error).errno, Errno::ACCESS);
                assert_eq!(fs::read(&path).unwrap(), b"theirs");
            }
        }
    }
}

#[test]
fn a_full_device_is_reported_by_name_and_number() {
    let mut out = Output::open(Path::new("/dev/full")).unwrap();
    write!(out, "gathered").unwrap();
    let error = out.finish().unwrap_err();
    assert_eq!(
        error.to_string(),
        "/dev/full: cannot write: No space left on device [ENOSPC]"
    );
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert!(!is_closed_pipe(&error));

    // A write that failed unheard is not forgotten.
    let mut out = Output::open(Path::new("/dev/full")).unwrap();
    let _ = out.write_all(&[0; 2 * BUFFER_BYTES]);
    out.finish().unwrap_err();
}

#[test]
fn what_is_held_back_is_seen_at_the_end_or_never() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("out");
    let held = File::create(&path).unwrap();
    for text in [&b"x"[..], &[b'y'; 3 * BUFFER_BYTES]] {
        for finished in [false, true] {
            let mut out = Output::open(Path::new(&proc_name(&held))).unwrap();
            out.hold_back(dir.path()).unwrap();
            out.write_all(text).unwrap();
            out.flush().unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"");
            if finished {
                out.finish().unwrap();
                assert!(fs::read(&path).unwrap() == text);
            }
        }
    }
    assert_eq!(entries(dir.path()), ["out"]);
    let mut out = Output::open(Path::new("/dev/full")).unwrap();
    let error = out.hold_back(&dir.path().join("nowhere")).unwrap_err();
    assert_eq!(inner(&error).errno, Errno::NOENT);
    out.hold_back(dir.path()).unwrap();
    out.write_all(b"x").unwrap();
    assert_eq!(inner(&out.finish().unwrap_err()).errno, Errno::NOSPC);
}

#[test]
fn devices_are_written_to_and_stay() {
    let mut out = Output::open(Path::new("/dev/null")).unwrap();
    out.write_all(&[0; 2 * BUFFER_BYTES]).unwrap();
    out.finish().unwrap();
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[test]
fn a_fifo_gets_the_bytes() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("fifo");
    sys::mknodat(
        CWD,
        &path,
        sys::FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let reader = std::thread::spawn({
        let path = path.clone();
        move || fs::read_to_string(path).unwrap()
    });
    let mut out = Output::open(&path).unwrap();
    write!(out, "through").unwrap();
    out.finish().unwrap();
    assert_eq!(reader.join().unwrap(), "through");
    assert!(fs::metadata(&path).unwrap().file_type().is_fifo());
}

#[test]
fn an_open_file_is_written_to_by_its_proc_name() {
    let dir = tempdir().unwrap();
    let path = dir.path().join("out");
    let held = File::create(&path).unwrap();
    let before = held.metadata().unwrap().ino();
    let mut out = Output::open(Path::new(&proc_name(&held))).unwrap();
    write!(out, "text").unwrap();
    out.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"text");
    assert_eq!(fs::metadata(&path).unwrap().ino(), before, "the same file");
}

#[test]
fn a_closed_pipe_can_be_told_from_failures() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let mut out = Output::new("pipe".into(), OwnedFd::from(writer).into(), None);
    write!(out, "nobody").unwrap();
    let error = out.finish().unwrap_err();
    assert!(is_closed_pipe(&error));
    assert!(error.to_string().ends_with("[EPIPE]"), "{error}");
}

#[test]
fn impossible_targets_are_refused_at_once() {
    let dir = tempdir().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    for (path, errno) in [
        ("missing/out", Errno::NOENT),
        ("file/out", Errno::NOTDIR),
        ("", Errno::ISDIR),
        ("out/", Errno::ISDIR),
        (".", Errno::ISDIR),
    ] {
        let error = Output::open(&dir.path().join(path)).unwrap_err();
        assert_eq!(inner(&error).errno, errno, "{path}");
    }
    assert_eq!(
        inner(&Output::open(Path::new("")).unwrap_err()).errno,
        Errno::NOENT
    );
    assert_eq!(entries(dir.path()), ["file"]);
}
