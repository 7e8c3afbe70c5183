//! Ids and fingerprints. Derived ones mean the same in every version, so they use one fixed hash
//! (BLAKE3) over length-prefixed parts.

use super::broken;

/// A key of the seals.
pub type Key = [u8; 32];

const ALPHABET: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const ID_LENGTH: usize = 12;

/// A random id: 12 characters of `[a-z0-9]`.
pub fn random_id() -> String {
    let mut bytes = [0; 32];
    fill(&mut bytes);
    spelled(&bytes)
}

/// An id that is the same for the same parts: 12 characters of `[a-z0-9]`.
pub fn derived_id(parts: &[&[u8]]) -> String {
    spelled(hashed(blake3::Hasher::new(), parts).as_bytes())
}

/// A short keyed hash over `parts`: 16 hexadecimal characters.
pub fn seal(key: &Key, parts: &[&[u8]]) -> String {
    let hash = hashed(blake3::Hasher::new_keyed(key), parts).to_hex();
    hash.chars().take(16).collect()
}

/// Tells whether bytes are still the same.
pub fn fingerprint(bytes: &[u8]) -> u32 {
    let hash = blake3::hash(bytes);
    let first = hash.as_bytes().first_chunk().unwrap_or_else(|| broken("a hash has 32 bytes"));
    u32::from_le_bytes(*first)
}

/// A new random key.
pub fn random_key() -> Key {
    let mut key = [0; 32];
    fill(&mut key);
    key
}

fn fill(bytes: &mut [u8]) {
    if let Err(why) = getrandom::fill(bytes) {
        panic!("the system gives no random numbers: {why}");
    }
}

fn hashed(mut hasher: blake3::Hasher, parts: &[&[u8]]) -> blake3::Hash {
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize()
}

fn spelled(bytes: &[u8]) -> String {
    let letters = bytes.iter().map(|byte| ALPHABET.get(usize::from(*byte) % ALPHABET.len()));
    letters.flatten().take(ID_LENGTH).map(|letter| char::from(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ids are in users' files: these values never change.
    #[test]
    fn derived_ids_are_fixed() {
        assert_eq!(derived_id(&[b"scout", b"0"]), derived_id(&[b"scout", b"0"]));
        assert_ne!(derived_id(&[b"scout", b"0"]), derived_id(&[b"scou", b"t0"]));
        expect_test::expect!["kkhelebh2584"].assert_eq(&derived_id(&[b"scout", b"0"]));
        expect_test::expect!["a6cb7693"].assert_eq(&format!("{:08x}", fingerprint(b"scout")));
        expect_test::expect!["370449bdd393aa6c"].assert_eq(&seal(&[7; 32], &[b"scout", b"0"]));
    }

    #[test]
    fn random_ids_have_the_shape_and_differ() {
        let (one, two) = (random_id(), random_id());
        assert_ne!(one, two);
        assert_eq!(one.len(), 12);
        assert!(one.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase()));
    }
}
