//! Certificates of a control plane that lives for minutes: an authority of its own, and what it
//! signs. Nobody else's authority is ever involved, and nothing of it outlives the cluster.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use time::{Duration, OffsetDateTime};

/// How far clocks may be apart, and how long a cluster may live.
const BEFORE: Duration = Duration::HOUR;
const AFTER: Duration = Duration::days(30);

/// Whose signature the members of a cluster believe.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

/// A certificate and its key, as PEM.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// A new one.
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

    /// Who answers under these names and addresses.
    pub(crate) fn server(&self, name: &str, names: &[&str]) -> Result<Identity, Error> {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        self.sign(params(name, names)?, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A user of the API, and the group of which it is.
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

/// A key with which service accounts' tokens are signed, and what they are checked with.
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
