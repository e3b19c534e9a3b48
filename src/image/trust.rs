//! The certificates that images trust: the files that the `ca-certificates` packages' scripts would generate.
//!
//! These are a PEM bundle for everything except Java, and a Java key store (JKS, version 2) with ordered aliases and
//! fixed dates.

use base64::Engine as _;
use sha1::{Digest as _, Sha1};

use super::tree::SOURCE_DATE_EPOCH;
use crate::digest::Digest;

/// The password of Java's own key store, known to all.
const PASSWORD: &str = "changeit";
const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// A certificate as a file of the package `ca-certificates`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    /// The file's name without its extension.
    pub(crate) name: String,
    /// The encoded certificate.
    pub(crate) der: Vec<u8>,
}

/// Reads the first certificate of a PEM file; `None` if there is none.
pub(crate) fn parse_pem(name: &str, text: &str) -> Option<Certificate> {
    let (_, rest) = text.split_once(BEGIN)?;
    let (body, _) = rest.split_once(END)?;
    let digits: String = body.chars().filter(|c| !c.is_whitespace()).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(digits).ok()?;
    (!der.is_empty()).then(|| Certificate { name: name.to_owned(), der })
}

/// Returns a PEM bundle of the certificates in the order given.
pub(crate) fn pem_bundle(certificates: &[Certificate]) -> String {
    let mut bundle = String::new();
    for certificate in certificates {
        let digits = base64::engine::general_purpose::STANDARD.encode(&certificate.der);
        bundle.push_str(BEGIN);
        for (index, digit) in digits.chars().enumerate() {
            if index % 64 == 0 {
                bundle.push('\n');
            }
            bundle.push(digit);
        }
        bundle.push('\n');
        bundle.push_str(END);
        bundle.push('\n');
    }
    bundle
}

/// Returns a Java key store that trusts the certificates, in the order of their aliases.
pub(crate) fn java_key_store(certificates: &[Certificate]) -> Vec<u8> {
    let mut named: Vec<(String, &Certificate)> =
        certificates.iter().map(|certificate| (alias(certificate), certificate)).collect();
    named.sort_by(|left, right| left.0.cmp(&right.0));
    let mut store = Vec::new();
    store.extend(0xFEED_FEED_u32.to_be_bytes());
    store.extend(2_u32.to_be_bytes());
    store.extend((named.len() as u32).to_be_bytes());
    for (alias, certificate) in named {
        store.extend(2_u32.to_be_bytes());
        put_text(&mut store, &alias);
        store.extend((SOURCE_DATE_EPOCH * 1000).to_be_bytes());
        put_text(&mut store, "X.509");
        store.extend((certificate.der.len() as u32).to_be_bytes());
        store.extend(&certificate.der);
    }
    let mut hasher = Sha1::new();
    for unit in PASSWORD.encode_utf16() {
        hasher.update(unit.to_be_bytes());
    }
    // Source: sun.security.provider.JavaKeyStore, which whitens the password with these words.
    hasher.update(b"Mighty Aphrodite");
    hasher.update(&store);
    store.extend(hasher.finalize());
    store
}

/// Returns a certificate's alias. It is ASCII, so that no text encoding matters. It is unique, even if names differ
/// only in non-ASCII characters.
fn alias(certificate: &Certificate) -> String {
    let shown = |c: char| if c.is_ascii_graphic() { c.to_ascii_lowercase() } else { '_' };
    let name: String = certificate.name.chars().take(200).map(shown).collect();
    format!("debian:{name}-{}", &Digest::of(&certificate.der).hex()[..8])
}

/// Writes a text of ASCII characters as `java.io.DataOutput.writeUTF` does.
fn put_text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text.bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundles_round_trip() {
        let certificates: Vec<Certificate> =
            [3usize, 48, 100].map(|length| Certificate { name: format!("C {length}"), der: vec![7; length] }).into();
        let bundle = pem_bundle(&certificates);
        let parsed: Vec<Certificate> = bundle
            .split_inclusive("-----END CERTIFICATE-----\n")
            .zip(&certificates)
            .map(|(text, certificate)| parse_pem(&certificate.name, text).unwrap())
            .collect();
        assert_eq!(parsed, certificates);
        assert!(bundle.lines().all(|line| line.len() <= 64));
        assert_eq!(parse_pem("x", "no certificate"), None);
    }

    #[test]
    fn the_key_store_is_sorted_and_fixed() {
        let certificates =
            ["Zeta=é", "Alpha"].map(|name| Certificate { name: name.to_owned(), der: name.as_bytes().to_vec() });
        let store = java_key_store(&certificates);
        let text = String::from_utf8_lossy(&store);
        assert!(text.find("debian:alpha-").unwrap() < text.find("debian:zeta=_-").unwrap());
        insta::assert_snapshot!(Digest::of(&store), @"sha256:db7d39e25f76d2e84adfaa5ebae4c6a051ec424615ef3e0bbedd46b31ef378b8");
    }
}
