//! The folders of control planes that users start. Each has a lock, which the process that runs the
//! control plane holds.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::failure::Failure;
use kube_lockstep_engines::upstream::build;

/// The poll interval for locks and files.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The folder of a control plane. The process that runs the control plane holds its lock.
pub(super) struct ClusterFolder {
    pub(super) name: String,
    pub(super) folder: PathBuf,
}

impl ClusterFolder {
    pub(super) fn new(name: &str) -> Result<ClusterFolder, Failure> {
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
    pub(super) fn driver_kubeconfig(&self) -> PathBuf {
        self.file("driver")
    }

    /// The lock file. It is next to the folder, because the holder of the lock may remove the
    /// folder.
    pub(super) fn lock_file(&self) -> PathBuf {
        self.folder.with_extension("lock")
    }

    /// Takes the lock; `None` if the cluster is running.
    pub(super) fn try_lock(&self) -> io::Result<Option<File>> {
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
            // The previous holder may have removed the file in the meantime.
            if is_file_at(&file, &self.lock_file())? {
                return Ok(Some(file));
            }
        }
    }

    /// Returns true if the cluster is running, without creating files.
    pub(super) fn is_running(&self) -> io::Result<bool> {
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

/// Returns true if an open file is still the one at a path.
#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;

    let current = fs::metadata(path).map(|it| it.ino()).ok();
    Ok(current == Some(file.metadata()?.ino()))
}

/// Returns true: Windows does not remove open files.
#[cfg(not(unix))]
fn is_file_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The log of the start, next to the folder.
pub(super) fn log_file(cluster: &ClusterFolder) -> PathBuf {
    cluster.folder.with_extension("log")
}

/// All clusters, running or not.
pub(super) fn folders() -> Result<Vec<ClusterFolder>, Failure> {
    let folder = build::cache_folder()?.join("clusters");
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let name = |path: PathBuf| Some(path.file_stem()?.to_string_lossy().into_owned());
    let names: BTreeSet<String> = entries.filter_map(|entry| name(entry.path())).collect();
    names.iter().map(|name| ClusterFolder::new(name)).collect()
}

/// Removes the leftovers of clusters whose owner was killed; with `dry_run`, only lists them.
pub(in crate::cli) fn sweep(dry_run: bool) -> anyhow::Result<Vec<PathBuf>> {
    sweep_except(None, dry_run)
}

/// Like [`sweep`], except for one cluster.
pub(super) fn sweep_except(own: Option<&str>, dry_run: bool) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for cluster in folders()?.into_iter().filter(|cluster| own != Some(&*cluster.name)) {
        let Some(lock) = cluster.try_lock()? else { continue };
        if cluster.folder.exists() {
            found.push(cluster.folder.clone());
        }
        if !dry_run {
            cluster.remove(&lock)?;
        }
    }
    Ok(found)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::cli::cluster) fn cluster() -> (tempfile::TempDir, ClusterFolder) {
        let folder = tempfile::tempdir().expect("a folder");
        let cluster = ClusterFolder { name: "mine".to_owned(), folder: folder.path().join("mine") };
        (folder, cluster)
    }

    #[test]
    fn listing_clusters_creates_no_files() {
        let (_folder, cluster) = cluster();
        assert!(!cluster.is_running().expect("a state") && !cluster.lock_file().exists());
        let lock = cluster.try_lock().expect("a lock").expect("a free lock");
        assert!(cluster.is_running().expect("a state"));
        cluster.remove(&lock).expect("it is removed");
        assert!(!cluster.is_running().expect("a state") && !cluster.lock_file().exists());
    }
}
