//! The certificates of the tests, made by `openssl`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::server::run;

/// A certificate and its key, in PEM.
#[derive(Clone)]
pub(super) struct Certificate {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
}

impl Certificate {
    fn at(folder: &Path, name: &str) -> Certificate {
        let file = |extension: &str| folder.join(format!("{name}.{extension}"));
        Certificate { certificate: file("crt"), key: file("key") }
    }

    /// A certificate that signs itself, for these names.
    pub(super) fn self_signed(folder: &Path, name: &str, names: &str) -> io::Result<Certificate> {
        let made = Certificate::at(folder, name);
        let mut openssl = request(name, &made.key);
        openssl.args(["-x509", "-days", "2", "-addext", &format!("subjectAltName={names}")]);
        openssl.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
        run(openssl.arg("-out").arg(&made.certificate))?;
        Ok(made)
    }

    /// An authority, which signs other certificates.
    pub(super) fn authority(folder: &Path) -> io::Result<Certificate> {
        let made = Certificate::at(folder, "authority");
        let mut openssl = request("authority", &made.key);
        run(openssl.args(["-x509", "-days", "2", "-out"]).arg(&made.certificate))?;
        Ok(made)
    }

    /// A certificate of a client, signed by an authority, of this X.509 version: 1 or 3.
    pub(super) fn signed_by(
        authority: &Certificate,
        folder: &Path,
        version: u8,
    ) -> io::Result<Certificate> {
        let name = if version == 1 { "version-1" } else { "client" };
        let made = Certificate::at(folder, name);
        let csr = folder.join(format!("{name}.csr"));
        run(request(name, &made.key).arg("-out").arg(&csr))?;
        let mut openssl = Command::new("openssl");
        openssl.args(["x509", "-req", "-days", "2", "-in"]).arg(csr);
        if version != 1 {
            // Extensions make it version 3.
            let extensions = folder.join("extensions");
            fs::write(&extensions, "extendedKeyUsage = clientAuth\n")?;
            openssl.arg("-extfile").arg(extensions);
        }
        openssl.arg("-CA").arg(&authority.certificate).arg("-CAkey").arg(&authority.key);
        run(openssl.arg("-CAcreateserial").arg("-out").arg(&made.certificate))?;
        Ok(made)
    }
}

/// `openssl req` for a new key.
fn request(name: &str, key: &Path) -> Command {
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]);
    openssl.args(["-subj", &format!("/CN={name}"), "-keyout"]).arg(key);
    openssl
}
