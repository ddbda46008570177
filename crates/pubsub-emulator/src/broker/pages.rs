//! Paging of lists. A page token is the last name of the page before it.

use std::collections::BTreeMap;
use std::ops::Bound;

/// Entries of a page when the client names no size.
const DEFAULT_PAGE: usize = 1000;

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<T>,
    /// Token of the next page, empty on the last.
    pub(crate) next: String,
}

/// The page of `all` after `token` whose entries `keep` turns into something.
pub(super) fn page<V, T>(
    all: &BTreeMap<String, V>,
    size: i32,
    token: &str,
    keep: impl Fn(&String, &V) -> Option<T>,
) -> Page<T> {
    let size = usize::try_from(size).ok().filter(|size| *size > 0).unwrap_or(DEFAULT_PAGE).min(DEFAULT_PAGE);
    let after = if token.is_empty() { Bound::Unbounded } else { Bound::Excluded(token) };
    let mut items = Vec::new();
    let mut last = "";
    for (name, value) in all.range::<str, _>((after, Bound::Unbounded)) {
        let Some(item) = keep(name, value) else { continue };
        if items.len() == size {
            return Page { items, next: last.to_owned() };
        }
        items.push(item);
        last = name;
    }
    Page { items, next: String::new() }
}
