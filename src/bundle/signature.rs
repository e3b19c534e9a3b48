//! Signatures of bundles in OpenSSH's format. `ssh-keygen -Y sign` makes them, so that keys in agents and on hardware
//! work and this program holds no key. This program verifies them itself, and `ssh-keygen -Y verify` does so as well.

use std::path::Path;
use std::process::{Command, Stdio};

use fs_err as fs;
use ssh_key::{PublicKey, SshSig};

use super::BundleError;

/// The namespace of signatures. A signature for another purpose is not accepted.
pub const NAMESPACE: &str = "testevo-sandbox-bundle";

/// The largest signature, in bytes.
pub const MOST_BYTES: u64 = 64 << 10;
/// The largest file of allowed signers, in bytes.
const MOST_ALLOWED_BYTES: u64 = 4 << 20;

/// Returns the signature of bytes. `temporary` is a directory of this process.
///
/// # Errors
/// [`BundleError::Signing`].
pub fn sign(bytes: &[u8], key: &Path, temporary: &Path) -> Result<Vec<u8>, BundleError> {
    let io = |error: std::io::Error| BundleError::Signing(error.to_string());
    let file = temporary.join("bundle-to-sign");
    let signature = temporary.join("bundle-to-sign.sig");
    fs::write(&file, bytes).map_err(io)?;
    if signature.exists() {
        // OpenSSH would ask before it replaces the file.
        fs::remove_file(&signature).map_err(io)?;
    }
    let mut command = Command::new("ssh-keygen");
    command.args(["-Y", "sign", "-n", NAMESPACE, "-f"]).arg(key).arg(&file);
    let output = command.stdout(Stdio::null()).output().map_err(io)?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it gave no reason");
        return Err(BundleError::Signing(last.chars().take(300).collect()));
    }
    fs::read(&signature).map_err(io)
}

/// Returns the principals of the signature's key, if it is among the allowed signers.
///
/// # Errors
/// The reason for which the signature is not accepted.
pub fn verify(bytes: &[u8], signature: &[u8], allowed: &Path) -> Result<String, String> {
    let length = fs::metadata(allowed).map_err(|error| error.to_string())?.len();
    if length > MOST_ALLOWED_BYTES {
        return Err(format!("`{}` has {length} bytes, more than {MOST_ALLOWED_BYTES}", allowed.display()));
    }
    let signers = fs::read_to_string(allowed).map_err(|error| error.to_string())?;
    let parsed = SshSig::from_pem(signature).map_err(|error| format!("it is no signature of OpenSSH: {error}"))?;
    let key = PublicKey::from(parsed.public_key().clone());
    let mut known = signers.lines().filter_map(Signer::parse);
    let Some(signer) = known.find(|signer| signer.key.key_data() == key.key_data()) else {
        let print = key.fingerprint(ssh_key::HashAlg::Sha256);
        return Err(format!("its key {print} is none that `{}` allows for `{NAMESPACE}`", allowed.display()));
    };
    if parsed.namespace() != NAMESPACE {
        return Err("it was made for another purpose".to_owned());
    }
    key.verify(NAMESPACE, bytes, &parsed).map_err(|_| "it is not of this bundle".to_owned())?;
    Ok(signer.principals.to_owned())
}

/// A line of a file of allowed signers.
struct Signer<'a> {
    principals: &'a str,
    key: PublicKey,
}

impl<'a> Signer<'a> {
    /// Parses a line. `None` for a comment, for a key that this program can't read, for a signer of other namespaces,
    /// and for options that this program does not know: these restrict a key, so that the key must not count.
    fn parse(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let (principals, rest) = line.split_once([' ', '\t'])?;
        let rest = rest.trim_start();
        let first = rest.split([' ', '\t']).next()?;
        let is_key = |text: &str| ["ssh-", "ecdsa-", "sk-"].iter().any(|start| text.starts_with(start));
        let key = if is_key(first) {
            rest
        } else {
            let namespaces = first.strip_prefix("namespaces=\"").and_then(|rest| rest.strip_suffix('"'))?;
            if !namespaces.split(',').any(|namespace| namespace == NAMESPACE) {
                return None;
            }
            rest[first.len()..].trim_start()
        };
        PublicKey::from_openssh(key).ok().map(|key| Self { principals, key })
    }
}
