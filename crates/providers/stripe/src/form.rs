use sha2::{Digest, Sha256};
use stripe_client_core::RequestBuilder;

/// Puts the pairs of a form in one order.
///
/// The typed requests keep metadata in a hash map, whose order changes from process to process, while the bytes of a
/// submission are frozen. Every array carries its index in the name, so the order of pairs means nothing to Stripe.
pub(crate) fn canonical(form: &str) -> String {
    let mut pairs: Vec<&str> = form.split('&').filter(|pair| !pair.is_empty()).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// SHA-256, in hex, of what a request asks for: path and body, no header.
pub(crate) fn fingerprint(request: &RequestBuilder) -> String {
    let body = canonical(request.body.as_deref().unwrap_or_default());
    let mut hash = Sha256::new();
    hash.update(request.path.as_bytes());
    hash.update(b"\n");
    hash.update(body.as_bytes());
    hex::encode(hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn the_order_of_pairs_does_not_matter() {
        assert_eq!(canonical("b=2&a=1&m[y]=3"), canonical("m[y]=3&b=2&a=1"));
        assert_eq!(canonical(""), "");
    }
}
