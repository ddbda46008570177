//! Form-encoded parameters with Stripe's bracket keys, kept flat: `metadata[operation_id]` is a name.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// Parameters of one call, from the query of a GET or the body of a POST.
#[derive(Debug, Clone, Default)]
pub(crate) struct Params(BTreeMap<String, String>);

impl Params {
    /// Decodes; a repeated name keeps its last value, except that `name[]` entries are numbered.
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        let mut params = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(encoded) {
            let name = match name.strip_suffix("[]") {
                Some(list) => {
                    let index = (0..).find(|n| !params.contains_key(&format!("{list}[{n}]")));
                    format!("{list}[{}]", index.unwrap_or(0_u32))
                }
                None => name.into_owned(),
            };
            params.insert(name, value.into_owned());
        }
        Self(params)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.0.get(name).cloned()
    }

    /// A number that validation has already accepted.
    pub(crate) fn int(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some("true")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// Entries `field[k]` as `k -> value`; empty values unset, as Stripe has it.
    pub(crate) fn nested(&self, field: &str) -> BTreeMap<String, String> {
        self.iter()
            .filter(|(_, value)| !value.is_empty())
            .filter_map(|(name, value)| Some((inner(name, field)?.to_owned(), value.to_owned())))
            .collect()
    }

    /// Values of `expand[0]`, `expand[1]`, …
    pub(crate) fn expand(&self) -> Vec<String> {
        self.nested("expand").into_values().collect()
    }

    /// SHA-256 over the path and the sorted parameters, so that order on the wire does not matter.
    pub(crate) fn hash(&self, path: &str) -> String {
        let mut hash = Sha256::new();
        hash.update(path);
        for (name, value) in self.iter() {
            for part in [name, value] {
                hash.update(part.len().to_le_bytes());
                hash.update(part);
            }
        }
        hex::encode(hash.finalize())
    }
}

/// `k` of `field[k]`.
pub(crate) fn inner<'a>(name: &'a str, field: &str) -> Option<&'a str> {
    name.strip_prefix(field)?.strip_prefix('[')?.strip_suffix(']')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_brackets_and_hashes_without_regard_to_order() {
        let one = Params::parse(b"amount=5&metadata%5Boperation_id%5D=a+b&expand[]=x&expand[]=y");
        assert_eq!(one.get("metadata[operation_id]"), Some("a b"));
        assert_eq!(one.nested("metadata").len(), 1);
        assert_eq!(one.expand(), ["x", "y"]);
        let two = Params::parse(b"expand[0]=x&expand[1]=y&metadata[operation_id]=a%20b&amount=5");
        assert_eq!(one.hash("/v1/a"), two.hash("/v1/a"));
        assert_ne!(one.hash("/v1/a"), one.hash("/v1/b"));
    }
}
