//! Certificates of a short-lived control plane: its certificate authority, which exists as long as
//! the cluster, and the certificates that it signs.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// The validity of certificates: the tolerated clock skew, and the longest lifetime of a cluster.
const BEFORE: Duration = Duration::HOUR;
const AFTER: Duration = Duration::days(30);

/// The certificate authority of a cluster.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    /// Creates an authority.
    pub(crate) fn new() -> Result<Authority, Error> {
        let mut params = params("kube-lockstep", Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        Ok(Authority { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate()?)? })
    }

    /// Its certificate, as PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The certificate of a server with these names and addresses.
    pub(crate) fn server(&self, name: &str, names: &[&str]) -> Result<Identity, Error> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.sign(params(name, names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// The certificate of an API user and its group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity, Error> {
        let mut params = params(user, Vec::new())?;
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        self.sign(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn sign(
        &self,
        mut params: CertificateParams,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// The keys that sign and verify the tokens of service accounts.
pub(crate) fn signing_key() -> Result<(String, String), Error> {
    let key = KeyPair::generate()?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

fn params(name: &str, names: Vec<String>) -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, name);
    let now = OffsetDateTime::now_utc();
    params.not_before = now - BEFORE;
    params.not_after = now + AFTER;
    Ok(params)
}
