//! Where a cluster's files may live: the server's account must be able to enter every directory above them.

use super::identity::Identity;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// A directory that outlives this process: `<tree>/.backline/<name>`, or one in the temporary directory that always
/// has the same name for the same tree, where the server's account cannot enter the tree (a clone under `/root`).
///
/// # Errors
/// Neither place is usable.
pub fn state_dir(tree: &Path, name: &str) -> io::Result<PathBuf> {
    let tree = tree.canonicalize()?;
    let inside = tree.join(".backline");
    if closed_above(&inside, Identity::choose()?).is_none() {
        fs::create_dir_all(&inside)?;
        return Ok(inside.join(name));
    }
    let mut hasher = DefaultHasher::new();
    tree.hash(&mut hasher);
    Ok(temporary()?.join(format!("backline-{:016x}-{name}", hasher.finish())))
}

/// A new name in the temporary directory, for a cluster that ends with this process.
///
/// # Errors
/// No temporary directory can be entered by the server's account.
pub fn throwaway_dir() -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(temporary()?.join(format!("backline-pg-{}-{count}", process::id())))
}

fn temporary() -> io::Result<PathBuf> {
    let identity = Identity::choose()?;
    [env::temp_dir(), "/tmp".into(), "/var/tmp".into()]
        .into_iter()
        .find(|dir| dir.is_dir() && closed_above(&dir.join("x"), identity).is_none())
        .ok_or_else(|| {
            io::Error::other("TMPDIR, /tmp and /var/tmp are all closed to the account that runs PostgreSQL")
        })
}

/// The first directory above `path` that the server's account cannot enter.
fn closed_above(path: &Path, identity: Identity) -> Option<PathBuf> {
    const OTHERS_MAY_ENTER: u32 = 0o001;
    if !identity.is_lent() {
        return None;
    }
    let closed = |dir: &&Path| {
        fs::metadata(dir)
            .is_ok_and(|data| data.mode() & OTHERS_MAY_ENTER == 0 && data.uid() != identity.uid())
    };
    path.ancestors().skip(1).find(closed).map(Path::to_owned)
}

/// Makes `dir` private to the server's account, or checks that it already is.
pub(super) fn prepare(dir: &Path, identity: Identity) -> io::Result<()> {
    if let Some(closed) = closed_above(dir, identity) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "the account that runs PostgreSQL cannot enter {}, which holds {}",
                closed.display(),
                dir.display()
            ),
        ));
    }
    if let Some(parent) = dir.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => identity.give(dir),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = fs::symlink_metadata(dir)?;
            if found.is_dir() && found.uid() == identity.uid() {
                return Ok(());
            }
            Err(io::Error::other(format!("{} exists and belongs to somebody else", dir.display())))
        }
        Err(error) => Err(error),
    }
}
