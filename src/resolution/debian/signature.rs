//! Checks who signed an index: cleartext signatures, with certificates whose fingerprints are pinned.
//!
//! Certificates may come from anywhere. Only those with a pinned primary fingerprint count, and of their keys only
//! those that the primary key confirms.

use std::collections::BTreeSet;

use jiff::Timestamp;
use pgp::composed::{CleartextSignedMessage, Deserializable, SignedPublicKey, SignedPublicSubKey};
use pgp::crypto::hash::HashAlgorithm;
use pgp::packet::{Signature, SignatureType};
use pgp::ser::Serialize as PacketSerialize;
use pgp::types::{KeyDetails, Tag, VerifyingKey};

/// Greatest difference of clocks, in seconds.
const CLOCK_TOLERANCE: i64 = 24 * 3600;
/// Further certificates and signatures are ignored.
const MAX_CERTIFICATES: usize = 200;
const MAX_SIGNATURES: usize = 16;

/// Why a signature does not count.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    /// The file is not a cleartext-signed message.
    #[error("it is not signed in the expected form: {0}")]
    Malformed(String),
    /// None of the pinned certificates is available.
    #[error("the keyring holds none of the trusted keys")]
    NoTrustedKey,
    /// No signature is valid.
    #[error("no signature by a trusted key is good: {0}")]
    Untrusted(String),
}

/// Certificates whose signatures count.
#[derive(Debug)]
pub struct TrustedKeys(Vec<SignedPublicKey>);

/// A text that a trusted key signed.
#[derive(Debug)]
pub struct SignedText {
    /// The exact signed text, with lines ending in `\n`.
    pub text: String,
    /// Primary fingerprints of the valid signatures' certificates, upper-case hexadecimal, sorted.
    pub signed_by: Vec<String>,
}

impl TrustedKeys {
    /// Reads a binary or armoured keyring and keeps the certificates whose primary fingerprint is in `pinned`, given in
    /// upper-case hexadecimal.
    ///
    /// # Errors
    /// [`SignatureError::NoTrustedKey`].
    pub fn read(keyring: &[u8], pinned: &[String]) -> Result<Self, SignatureError> {
        let (certificates, _) = SignedPublicKey::from_reader_many(keyring).map_err(|_| SignatureError::NoTrustedKey)?;
        let trusted: Vec<SignedPublicKey> = certificates
            .take(MAX_CERTIFICATES)
            .filter_map(Result::ok)
            .filter(|certificate| pinned.contains(&fingerprint(certificate)))
            .collect();
        if trusted.is_empty() { Err(SignatureError::NoTrustedKey) } else { Ok(Self(trusted)) }
    }

    /// Checks a cleartext-signed message and returns the signed text.
    ///
    /// # Errors
    /// [`SignatureError`].
    pub fn verify(&self, message: &str, now: Timestamp) -> Result<SignedText, SignatureError> {
        let (message, _) = CleartextSignedMessage::from_string(message)
            .map_err(|error| SignatureError::Malformed(error.to_string().chars().take(200).collect()))?;
        let text = message.signed_text();
        let mut signed_by = BTreeSet::new();
        let mut reasons = BTreeSet::new();
        for signature in message.signatures().iter().take(MAX_SIGNATURES) {
            match self.signer(signature, text.as_bytes(), now.as_second()) {
                Ok(signer) => {
                    signed_by.insert(signer);
                }
                Err(reason) => {
                    reasons.insert(reason);
                }
            }
        }
        if signed_by.is_empty() {
            let reasons: Vec<&str> = reasons.into_iter().collect();
            return Err(SignatureError::Untrusted(reasons.join(", ")));
        }
        Ok(SignedText { text: text.replace("\r\n", "\n"), signed_by: signed_by.into_iter().collect() })
    }

    /// Returns the primary fingerprint of the certificate that made the signature.
    fn signer(&self, signature: &Signature, text: &[u8], now: i64) -> Result<String, &'static str> {
        if !matches!(signature.typ(), Some(SignatureType::Text | SignatureType::Binary)) {
            return Err("it is of another kind");
        }
        if !is_strong(signature) {
            return Err("its hash is weak");
        }
        let created = created(signature).ok_or("it has no date")?;
        if created > now + CLOCK_TOLERANCE {
            return Err("it is from the future");
        }
        if signature.signature_expiration_time().is_some_and(|life| created + i64::from(life.as_secs()) < now) {
            return Err("it has expired");
        }
        let mut reason = "it is by a key that is not trusted";
        for certificate in &self.0 {
            let primary = &certificate.primary_key;
            if signature.verify(primary, text).is_ok() {
                return match primary_state(certificate, now, true) {
                    Ok(()) => Ok(fingerprint(certificate)),
                    Err(state) => Err(state),
                };
            }
            for subkey in &certificate.public_subkeys {
                if signature.verify(&subkey.key, text).is_ok() {
                    match primary_state(certificate, now, false).and_then(|()| subkey_state(certificate, subkey, now)) {
                        Ok(()) => return Ok(fingerprint(certificate)),
                        Err(state) => reason = state,
                    }
                }
            }
        }
        Err(reason)
    }
}

fn fingerprint(certificate: &SignedPublicKey) -> String {
    format!("{:X}", certificate.primary_key.fingerprint())
}

fn created(signature: &Signature) -> Option<i64> {
    signature.created().map(|created| i64::from(created.as_secs()))
}

fn is_strong(signature: &Signature) -> bool {
    matches!(
        signature.hash_alg(),
        Some(
            HashAlgorithm::Sha256
                | HashAlgorithm::Sha384
                | HashAlgorithm::Sha512
                | HashAlgorithm::Sha3_256
                | HashAlgorithm::Sha3_512
        )
    )
}

fn has_expired(key: &impl KeyDetails, binding: &Signature, now: i64) -> bool {
    let life = binding.key_expiration_time().map_or(0, |life| life.as_secs());
    life > 0 && i64::from(key.created_at().as_secs()) + i64::from(life) < now
}

/// Checks the primary key's newest signature of itself.
fn primary_state(certificate: &SignedPublicKey, now: i64, must_sign: bool) -> Result<(), &'static str> {
    let primary = &certificate.primary_key;
    if certificate.details.revocation_signatures.iter().any(|revocation| revocation.verify_key(primary).is_ok()) {
        return Err("its key is revoked");
    }
    let by_user = certificate.details.users.iter().flat_map(|user| {
        let certifies = |signature: &&Signature| {
            signature.typ() != Some(SignatureType::CertRevocation)
                && signature.verify_certification(primary, Tag::UserId, &user.id).is_ok()
        };
        user.signatures.iter().filter(certifies)
    });
    let direct = certificate.details.direct_signatures.iter();
    let direct = direct.filter(|signature| signature.verify_key(primary).is_ok());
    let newest = by_user
        .chain(direct)
        .filter(|signature| {
            is_strong(signature) && created(signature).is_some_and(|date| date <= now + CLOCK_TOLERANCE)
        })
        .max_by_key(|signature| created(signature));
    let newest = newest.ok_or("its key does not vouch for itself")?;
    if has_expired(primary, newest, now) {
        return Err("its key has expired");
    }
    if must_sign && !newest.key_flags().sign() {
        return Err("its key is not for signing");
    }
    Ok(())
}

/// Checks that the primary key accepted the subkey for signing, and that the subkey agreed.
fn subkey_state(certificate: &SignedPublicKey, subkey: &SignedPublicSubKey, now: i64) -> Result<(), &'static str> {
    let primary = &certificate.primary_key;
    let valid = |signature: &&Signature| is_binding(signature, primary, &subkey.key);
    let revoked = subkey
        .signatures
        .iter()
        .filter(valid)
        .any(|signature| signature.typ() == Some(SignatureType::SubkeyRevocation));
    if revoked {
        return Err("its key is revoked");
    }
    let newest = subkey
        .signatures
        .iter()
        .filter(valid)
        .filter(|signature| {
            is_strong(signature) && created(signature).is_some_and(|date| date <= now + CLOCK_TOLERANCE)
        })
        .max_by_key(|signature| created(signature))
        .ok_or("its key does not belong to a trusted one")?;
    let agreed = newest
        .embedded_signature()
        .is_some_and(|back| is_strong(back) && back.verify_primary_key_binding(&subkey.key, primary).is_ok());
    if !(newest.key_flags().sign() && agreed) {
        return Err("its key is not for signing");
    }
    if has_expired(&subkey.key, newest, now) { Err("its key has expired") } else { Ok(()) }
}

fn is_binding<P, S>(signature: &Signature, primary: &P, subkey: &S) -> bool
where
    P: VerifyingKey + PacketSerialize,
    S: KeyDetails + PacketSerialize,
{
    signature.verify_subkey_binding(primary, subkey).is_ok()
}

#[cfg(test)]
pub(crate) mod tests;
