//! The folders of control planes that people start: each has a lock, held by the process that runs
//! the control plane.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use crate::cli::failure::Failure;
use crate::engine::upstream::build;

/// The interval between two checks of a lock or a file.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The folder of a control plane. The process that runs the control plane holds its lock.
pub(super) struct ClusterFolder {
    pub(super) name: String,
    pub(super) folder: PathBuf,
}

impl ClusterFolder {
    pub(super) fn of(name: &str) -> Result<ClusterFolder, Failure> {
        let folder = build::cache_folder()?.join("clusters").join(name);
        Ok(ClusterFolder { name: name.to_owned(), folder })
    }

    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The kubeconfig with administrator rights.
    pub(super) fn kubeconfig(&self) -> PathBuf {
        self.file("kubeconfig")
    }

    /// The kubeconfig of the user that runs scenarios.
    pub(super) fn drivers(&self) -> PathBuf {
        self.file("driver")
    }

    /// The lock file. It is beside the folder, because the holder of the lock may remove the
    /// folder.
    pub(super) fn lock_file(&self) -> PathBuf {
        self.folder.with_extension("lock")
    }

    /// Takes the lock; `None` if the cluster is running.
    pub(super) fn take(&self) -> io::Result<Option<File>> {
        if let Some(parent) = self.folder.parent() {
            fs::create_dir_all(parent)?;
        }
        loop {
            let file = File::create(self.lock_file())?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // The previous holder may have removed the file meanwhile.
            let there = fs::metadata(self.lock_file()).map(|it| it.ino()).ok();
            if there == Some(file.metadata()?.ino()) {
                return Ok(Some(file));
            }
        }
    }

    /// Returns true if the cluster is running, without creating files.
    pub(super) fn runs(&self) -> io::Result<bool> {
        let file = match File::open(self.lock_file()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            opened => opened?,
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(false),
            Err(TryLockError::WouldBlock) => Ok(true),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// All files of the cluster; the lock file, which shows that it exists, comes last.
    pub(super) fn all(&self) -> [PathBuf; 3] {
        [self.folder.clone(), log_file(self), self.lock_file()]
    }

    /// Removes the folder of a cluster that is not running.
    pub(super) fn clear(&self, _lock: &File) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Removes all files of a cluster that is not running.
    pub(super) fn remove(&self, lock: &File) -> io::Result<()> {
        self.clear(lock)?;
        let [_, files @ ..] = self.all();
        for file in files {
            match fs::remove_file(file) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    pub(super) fn not_running(&self) -> Failure {
        let what = format!("no control plane `{}` is running", self.name);
        Failure::nothing(what).hint("start it with `kube-lockstep cluster start`")
    }
}

/// The log of the start, beside the folder.
pub(super) fn log_file(place: &ClusterFolder) -> PathBuf {
    place.folder.with_extension("log")
}

/// All clusters, running or not.
pub(super) fn folders() -> Result<Vec<ClusterFolder>, Failure> {
    let folder = build::cache_folder()?.join("clusters");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let names: BTreeSet<String> = entries.filter_map(|entry| name(entry.path())).collect();
    names.iter().map(|name| ClusterFolder::of(name)).collect()
}

/// Removes the leftovers of clusters whose owner was killed; with `only_tell`, only lists them.
pub(in crate::cli) fn sweep(only_tell: bool) -> anyhow::Result<Vec<PathBuf>> {
    sweep_but(None, only_tell)
}

/// Like [`sweep`], but skips one cluster.
pub(super) fn sweep_but(own: Option<&str>, only_tell: bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for place in folders()?.into_iter().filter(|place| own != Some(&*place.name)) {
        let Some(lock) = place.take()? else { continue };
        if place.folder.exists() {
            found.push(place.folder.clone());
        }
        if !only_tell {
            place.remove(&lock)?;
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::cli::cluster) fn place() -> (tempfile::TempDir, ClusterFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = ClusterFolder { name: "mine".to_owned(), folder: folder.path().join("mine") };
        (folder, place)
    }

    #[test]
    fn listing_clusters_creates_no_files() {
        let (_folder, place) = place();
        assert!(!place.runs().expect("it can be seen") && !place.lock_file().exists());
        let lock = place.take().expect("a lock").expect("nobody has it");
        assert!(place.runs().expect("it can be seen"));
        place.remove(&lock).expect("it is removed");
        assert!(!place.runs().expect("it can be seen") && !place.lock_file().exists());
    }
}
