use pgp::composed::{ArmorOptions, KeyType, SecretKeyParamsBuilder, SignedSecretKey, SubkeyParamsBuilder};
use pgp::ser::Serialize as _;
use pgp::types::Password;

use super::*;

/// Makes a certificate whose primary key certifies and whose subkey signs.
pub(crate) fn new_key() -> SignedSecretKey {
    let subkey = SubkeyParamsBuilder::default().key_type(KeyType::Ed25519Legacy).can_sign(true).build().unwrap();
    let parameters = SecretKeyParamsBuilder::default()
        .key_type(KeyType::Ed25519Legacy)
        .can_certify(true)
        .can_sign(false)
        .primary_user_id("archive".to_owned())
        .subkey(subkey)
        .build()
        .unwrap();
    parameters.generate(rand::thread_rng()).unwrap()
}

pub(crate) fn pinned(key: &SignedSecretKey) -> Vec<String> {
    vec![format!("{:X}", key.primary_key.fingerprint())]
}

pub(crate) fn keyring(keys: &[&SignedSecretKey]) -> Vec<u8> {
    keys.iter().flat_map(|key| SignedPublicKey::from((*key).clone()).to_bytes().unwrap()).collect()
}

/// Signs with the subkey, as archives do.
pub(crate) fn sign(key: &SignedSecretKey, text: &str) -> String {
    let subkey = &key.secret_subkeys[0].key;
    let message = CleartextSignedMessage::sign(rand::thread_rng(), text, subkey, &Password::empty()).unwrap();
    message.to_armored_string(ArmorOptions::default()).unwrap()
}

const TEXT: &str = "Suite: sid\n- dashed\n\nlast\n";

#[test]
fn a_pinned_keys_subkey_may_sign_and_the_text_is_what_was_signed() {
    let (key, other) = (new_key(), new_key());
    let keys = TrustedKeys::read(&keyring(&[&other, &key]), &pinned(&key)).unwrap();
    let signed = keys.verify(&sign(&key, TEXT), Timestamp::now()).unwrap();
    assert_eq!(signed.text, TEXT);
    assert_eq!(signed.signed_by, pinned(&key));
}

#[test]
fn other_keys_changed_texts_and_wrong_times_are_refused() {
    let (key, other) = (new_key(), new_key());
    let keys = TrustedKeys::read(&keyring(&[&other, &key]), &pinned(&key)).unwrap();
    let now = Timestamp::now();
    let message = sign(&key, TEXT);
    let tampered = message.replacen("sid", "sod", 1);
    let past: Timestamp = "2020-01-01T00:00:00Z".parse().unwrap();
    for (message, time) in [(sign(&other, TEXT), now), (tampered, now), (message.clone(), past)] {
        let result = keys.verify(&message, time);
        assert!(matches!(result, Err(SignatureError::Untrusted(_))), "{result:?}");
    }
    for message in [TEXT.to_owned(), format!("Suite: x\n{message}"), format!("{message}\nSuite: x\n"), String::new()] {
        assert!(matches!(keys.verify(&message, now), Err(SignatureError::Malformed(_))));
    }
}

#[test]
fn a_primary_key_that_only_certifies_does_not_sign() {
    let key = new_key();
    let keys = TrustedKeys::read(&keyring(&[&key]), &pinned(&key)).unwrap();
    let message = CleartextSignedMessage::sign(rand::thread_rng(), TEXT, &key.primary_key, &Password::empty()).unwrap();
    let result = keys.verify(&message.to_armored_string(ArmorOptions::default()).unwrap(), Timestamp::now());
    assert!(matches!(result, Err(SignatureError::Untrusted(_))), "{result:?}");
}

#[test]
fn a_subkey_that_another_certificate_claims_does_not_count() {
    let (key, thief) = (new_key(), new_key());
    // The pinned certificate with a stranger's subkey and its binding, as a hostile keyring would have it.
    let mut forged = SignedPublicKey::from(key.clone());
    forged.public_subkeys = SignedPublicKey::from(thief.clone()).public_subkeys;
    let keys = TrustedKeys::read(&forged.to_bytes().unwrap(), &pinned(&key)).unwrap();
    let result = keys.verify(&sign(&thief, TEXT), Timestamp::now());
    assert!(matches!(result, Err(SignatureError::Untrusted(_))), "{result:?}");
}

#[test]
fn a_keyring_without_a_pinned_certificate_is_refused() {
    let (key, other) = (new_key(), new_key());
    for bytes in [keyring(&[&other]), Vec::new(), b"garbage".to_vec()] {
        assert!(matches!(TrustedKeys::read(&bytes, &pinned(&key)), Err(SignatureError::NoTrustedKey)));
    }
}
