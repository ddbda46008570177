//! Identities computed outside SQL, equal to what the SQL functions compute.

use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Longest key stored as it is, in bytes; `backline.stored_key` has the same limit.
const KEY_LIMIT: usize = 512;

/// The key, or its hash when it would not fit an index row.
pub(crate) fn stored_key(key: &str) -> String {
    if key.len() <= KEY_LIMIT {
        return key.to_owned();
    }
    format!("sha256:{}", hex::encode(Sha256::digest(key.as_bytes())))
}

/// Identity of the first occurrence of an operation; `backline.operation_id` computes the same.
pub(crate) fn operation_id(organization: Uuid, kind: &str, stored_key: &str) -> Uuid {
    let name = format!("{organization}\u{1f}{kind}\u{1f}0\u{1f}{stored_key}");
    let digest = Sha256::digest(name.as_bytes());
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::{operation_id, stored_key};
    use uuid::Uuid;

    #[test]
    fn ids_equal_what_the_database_computed() {
        // select backline.operation_id('00000000-0000-0000-0000-000000000001', 'stripe.transfer', 'p1')
        let id = operation_id(Uuid::from_u128(1), "stripe.transfer", "p1");
        assert_eq!(id.to_string(), "ddf0d9d5-8588-8ab8-8de9-f057379ad372");
        assert_eq!(id.get_version_num(), 8);
        assert_ne!(id, operation_id(Uuid::from_u128(1), "stripe.transfer", "p2"));
        assert_ne!(id, operation_id(Uuid::from_u128(2), "stripe.transfer", "p1"));
    }

    #[test]
    fn a_long_key_is_hashed_and_a_short_one_is_kept() {
        assert_eq!(stored_key("k"), "k");
        assert_eq!(stored_key(&"k".repeat(512)).len(), 512);
        assert_eq!(stored_key(&"k".repeat(513)).len(), 71);
    }
}
