//! Disks and file systems of a test's own. What is mounted is mounted in a namespace of a child,
//! and loop devices detach when they are unmounted: when the test ends, by whatever cause, the
//! child's input closes, it ends, and the kernel takes everything back.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::support::dir;

/// What a shell script has set up, for as long as this lives.
pub struct Held {
    holder: Child,
    /// What the script said.
    pub said: String,
}

impl Held {
    /// Runs a script in `dir`, in a mount namespace of its own; `undo` is run when this goes away.
    pub fn new(dir: &Path, script: &str, undo: &str) -> Result<Held, String> {
        let script = format!("{{ {script}; }} && echo ready && {{ cat; {undo}; }}");
        let mut command = Command::new("unshare");
        command
            .args(["--mount", "sh", "-c", &script])
            .current_dir(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals from a terminal are for the test: this one waits for its input to close.
            .process_group(0);
        let mut holder = command
            .spawn()
            .map_err(|error| format!("unshare: {error}"))?;
        let mut said = String::new();
        let mut out = BufReader::new(holder.stdout.take().unwrap());
        while out
            .read_line(&mut said)
            .map_err(|error| error.to_string())?
            > 0
        {
            if let Some(before) = said.strip_suffix("ready\n") {
                let said = before.to_string();
                return Ok(Held { holder, said });
            }
        }
        let mut why = String::new();
        let _ = holder.stderr.take().unwrap().read_to_string(&mut why);
        let _ = holder.wait();
        Err(why.trim().to_string())
    }

    /// The file that stands for its mount namespace.
    pub fn namespace(&self) -> PathBuf {
        format!("/proc/{}/ns/mnt", self.holder.id()).into()
    }

    /// The root directory as the script sees it.
    fn root(&self) -> PathBuf {
        format!("/proc/{}/root", self.holder.id()).into()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

/// A file system with files of the test's.
pub struct Disk {
    held: Held,
    dir: TempDir,
}

impl Disk {
    /// Makes a directory `files` of these names and contents, and runs a script beside it that
    /// makes a file system of them and mounts it on `mnt`.
    pub fn new(files: &[(&str, &[u8])], script: &str) -> Result<Disk, String> {
        let dir = dir();
        let path = dir.path();
        for below in ["files", "mnt"] {
            fs::create_dir(path.join(below)).unwrap();
        }
        for (name, text) in files {
            fs::write(path.join("files").join(name), text).unwrap();
        }
        let held = Held::new(path, script, ":")?;
        Ok(Disk { held, dir })
    }

    /// ext4 on a device with sectors of so many bytes.
    pub fn ext4(files: &[(&str, &[u8])], sector: u32) -> Result<Disk, String> {
        let script = format!(
            "truncate -s 96M image && mkfs.ext4 -q -F -b 4096 -d files image && {} && \
             debugfs -R 'blocks /file' image 2>/dev/null",
            mount_image("-o ro,noload", sector)
        );
        Disk::new(files, &script)
    }

    /// xfs on a device with sectors of so many bytes.
    pub fn xfs(files: &[(&str, &[u8])], sector: u32) -> Result<Disk, String> {
        let script = format!(
            "truncate -s 320M image && mkfs.xfs -q -s size={sector} image && {} && cp files/* mnt",
            mount_image("", sector)
        );
        Disk::new(files, &script)
    }

    /// A file of it.
    pub fn path(&self, name: &str) -> PathBuf {
        let mnt = self.dir.path().strip_prefix("/").unwrap().join("mnt");
        self.held.root().join(mnt).join(name)
    }

    /// What it lies on.
    pub fn image(&self) -> PathBuf {
        self.dir.path().join("image")
    }

    /// What the script said.
    pub fn said(&self) -> &str {
        &self.held.said
    }
}

/// A shell command that mounts `image` on `mnt`. Detaching a device that is mounted means: when
/// it isn't any more.
pub fn mount_image(options: &str, sector: u32) -> String {
    format!(
        "{{ device=$(losetup --find --show --sector-size {sector} image) && \
         {{ mount {options} $device mnt; done=$?; losetup --detach $device; [ $done = 0 ]; }}; }}"
    )
}

/// A loop device; it goes away.
pub struct Loop(pub PathBuf);

impl Loop {
    pub fn with_sectors(file: &Path, bytes: u32) -> Result<Loop, String> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show", "--sector-size", &bytes.to_string()]);
        let done = losetup
            .arg(file)
            .output()
            .map_err(|error| format!("losetup: {error}"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).trim().to_string());
        }
        let path = String::from_utf8(done.stdout).unwrap();
        Ok(Loop(path.trim().into()))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup")
            .arg("--detach")
            .arg(&self.0)
            .status();
    }
}
