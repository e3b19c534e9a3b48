//! Credentials for registries, where Podman and Docker keep them.

use std::env;
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential};
use oci_client::secrets::RegistryAuth;

/// Returns the credentials for a registry, of Podman before those of Docker. Without any, the registry says whether it wants
/// some.
///
/// # Errors
/// Why credentials that are there can't be used, in words.
pub(super) fn of(registry: &str) -> Result<RegistryAuth, String> {
    let kept = [
        (podman_file(), docker_credential::get_podman_credential(registry)),
        (docker_file(), docker_credential::get_credential(registry)),
    ];
    for (file, found) in kept {
        match found {
            Ok(DockerCredential::UsernamePassword(user, password)) => return Ok(RegistryAuth::Basic(user, password)),
            Ok(DockerCredential::IdentityToken(_)) => {
                return Err("an identity token is kept; log in with a user name and an access token".to_owned());
            }
            Err(CredentialRetrievalError::NoCredentialConfigured | CredentialRetrievalError::ConfigNotFound) => {}
            // A file that is not there is told by the same error as one that can't be read.
            Err(CredentialRetrievalError::ConfigReadError) => {
                if let Some(file) = file.filter(|file| file.exists()) {
                    return Err(format!("`{}` is not readable, or no JSON", file.display()));
                }
            }
            // What helpers say where they have none.
            Err(CredentialRetrievalError::HelperFailure { stdout, .. }) if stdout.contains("credentials not found") => {
            }
            Err(error) => return Err(error.to_string()),
        }
    }
    Ok(RegistryAuth::Anonymous)
}

fn podman_file() -> Option<PathBuf> {
    let runtime = || Some(Path::new(&env::var_os("XDG_RUNTIME_DIR")?).join("containers/auth.json"));
    env::var_os("REGISTRY_AUTH_FILE").map(PathBuf::from).or_else(runtime)
}

fn docker_file() -> Option<PathBuf> {
    let home = || Some(Path::new(&env::var_os("HOME")?).join(".docker"));
    Some(env::var_os("DOCKER_CONFIG").map(PathBuf::from).or_else(home)?.join("config.json"))
}
