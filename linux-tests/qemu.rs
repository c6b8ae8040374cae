//! Machines that aren't at hand, emulated by qemu: another kernel with the program and its libraries in
//! the initial memory file system, and devices as asked for.
//!
//! `make test-all` fetches the kernels; RINGFOLD_KERNELS names directories of unpacked kernel packages,
//! with a colon between. Nothing of this machine's own processor is used, so that it runs anywhere, and slowly.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::write;

const KERNELS: &str = "RINGFOLD_KERNELS";
const QEMU: &str = "qemu-system-x86_64";

/// The kernels to boot, in the order given; else why there are none.
pub fn kernels() -> Result<Vec<PathBuf>, String> {
    let named = std::env::var_os(KERNELS).filter(|kernels| !kernels.is_empty());
    let named =
        named.ok_or_else(|| format!("{KERNELS} names no kernels: make test-all fetches some"))?;
    if let Err(error) = Command::new(QEMU).arg("--version").output() {
        return Err(format!("{QEMU}: {error}"));
    }
    Ok(std::env::split_paths(&named).collect())
}

/// Runs a script in a directory; on failure returns what it printed on stderr.
pub fn shell(dir: &Path, script: &str) -> Result<(), String> {
    let done = Command::new("sh")
        .args(["-ec", script])
        .current_dir(dir)
        .output()
        .unwrap();
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_string()),
    }
}

/// A file below a directory whose name begins so.
fn find(dir: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(dir).ok()?;
    let mut below: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    below.sort();
    below.iter().find_map(|path| match path.is_dir() {
        true => find(path, name),
        false => path
            .file_name()?
            .to_str()?
            .starts_with(name)
            .then(|| path.clone()),
    })
}

/// Fills `root` below a directory: busybox, the program with its libraries, and an `init` that makes
/// the usual file systems, loads the modules in /modules and goes on with `script`.
pub fn make_root(dir: &Path, script: &str) -> Result<(), String> {
    let root = dir.join("root");
    for below in ["bin", "proc", "sys", "dev", "mnt", "modules"] {
        fs::create_dir_all(root.join(below)).unwrap();
    }
    let program = env!("CARGO_BIN_EXE_ringfold");
    shell(
        dir,
        &format!(
            "busybox=$(command -v busybox) || {{ echo no busybox >&2; exit 1; }}
             ! ldd $busybox >/dev/null 2>&1 || {{ echo busybox is not static >&2; exit 1; }}
             cp $busybox root/bin/busybox
             strip -o root/bin/ringfold {program} || cp {program} root/bin/ringfold
             ldd {program} | grep -o '/[^ ]*' | while read library; do
               mkdir -p root$(dirname $library) && cp -L $library root$library
             done"
        ),
    )?;
    let init = format!(
        "#!/bin/busybox sh\n\
         /bin/busybox --install -s /bin\n\
         mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev\n\
         dmesg -n 1\n\
         . /modules/load\n\
         {script}\n\
         sync; poweroff -f\n"
    );
    write(&root, "init", init.as_bytes());
    shell(dir, "chmod +x root/init")
}

/// Puts modules of a kernel below `root`, each with its parameters behind its name, and what loads them
/// in order. One that the kernel lacks is taken to be built in.
fn copy_modules(root: &Path, kernel: &Path, modules: &[&str]) -> Result<(), String> {
    let to = root.join("modules");
    shell(&to, "rm -f *; : >load")?;
    let Some(tree) = find(&kernel.join("lib"), "modules.order") else {
        return Ok(());
    };
    let tree = tree.parent().unwrap();
    let release = tree.file_name().unwrap().to_str().unwrap();
    if !tree.join("modules.dep").exists() {
        shell(kernel, &format!("busybox depmod -b . {release}"))?;
    }
    let all = fs::read_to_string(tree.join("modules.dep"))
        .map_err(|error| format!("modules.dep: {error}"))?;
    let mut load = String::new();
    for module in modules {
        let (module, parameters) = module.split_once(' ').unwrap_or((module, ""));
        let file = format!("{module}.ko");
        let named = |path: &str| Path::new(path).file_name().unwrap() == file.as_str();
        let mut lines = all.lines().filter_map(|line| line.split_once(':'));
        let Some((path, needs)) = lines.find(|(path, _)| named(path)) else {
            continue;
        };
        // The line names last what must be loaded first.
        for needed in needs.split_whitespace().rev().chain([path]) {
            let name = Path::new(needed).file_name().unwrap().to_str().unwrap();
            fs::copy(tree.join(needed), to.join(name)).unwrap();
            let parameters = if needed == path { parameters } else { "" };
            // Two modules may need the same one.
            writeln!(load, "insmod /modules/{name} {parameters} 2>/dev/null").unwrap();
        }
    }
    write(&to, "load", load.as_bytes());
    Ok(())
}

/// Boots a kernel with modules and arguments of qemu's, and returns what its console showed.
pub fn boot(dir: &Path, kernel: &Path, modules: &[&str], qemu: &[&str]) -> Result<String, String> {
    let image = find(&kernel.join("boot"), "vmlinuz")
        .ok_or_else(|| format!("no boot/vmlinuz in {}", kernel.display()))?;
    copy_modules(&dir.join("root"), kernel, modules)?;
    shell(
        dir,
        "cd root && find . | busybox cpio -o -H newc >../initrd 2>/dev/null",
    )?;
    // Parameters of a module that is built in.
    let built_in: Vec<_> = modules
        .iter()
        .filter_map(|module| module.split_once(' '))
        .flat_map(|(name, all)| all.split(' ').map(move |one| format!("{name}.{one}")))
        .collect();
    let built_in = built_in.join(" ");
    let mut machine = Command::new("timeout");
    machine
        .args(["-s", "KILL", "400", QEMU, "-accel", "tcg"])
        .args(["-nographic", "-no-reboot", "-nic", "none", "-append"])
        .arg(format!("console=ttyS0 quiet panic=-1 {built_in}"))
        .arg("-kernel")
        .arg(image)
        .arg("-initrd")
        .arg(dir.join("initrd"))
        .args(qemu)
        .current_dir(dir)
        .stdin(Stdio::null());
    let output = machine
        .output()
        .map_err(|error| format!("{QEMU}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).replace('\r', ""))
}
