//! Objects of one kind in order of creation, with indexes for the list filters.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use crate::faults::Becomes;

/// What every object has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Base {
    /// Number of creation; ids are made of it.
    pub(crate) n: u64,
    /// Connected account it belongs to; `None` is the platform.
    pub(crate) account: Option<String>,
    pub(crate) created_ms: i64,
    /// Retrieve and list do not see the object earlier.
    pub(crate) visible_ms: i64,
    pub(crate) becomes: Option<Becomes>,
    pub(crate) metadata: std::collections::BTreeMap<String, String>,
}

impl Base {
    /// The later status, once its time has come.
    pub(crate) fn became(&self, now_ms: i64) -> Option<&Becomes> {
        self.becomes.as_ref().filter(|later| now_ms >= later.at_ms)
    }

    pub(crate) fn created(&self) -> i64 {
        self.created_ms / 1_000
    }
}

/// An object of a table.
pub(crate) trait Record {
    /// Prefix of ids, such as `tr`.
    const PREFIX: &'static str;
    /// Kind in error texts and `object` fields.
    const OBJECT: &'static str;

    fn base(&self) -> &Base;

    /// Values that list calls may filter by. They never change after creation.
    fn keys(&self) -> Vec<(&'static str, String)>;

    fn id(&self) -> String {
        make_id(Self::PREFIX, self.base().n)
    }
}

/// `tr_1B…`, with the number in hexadecimal.
pub(crate) fn make_id(prefix: &str, n: u64) -> String {
    format!("{prefix}_1B{n:014x}")
}

/// The number of an id with this prefix.
pub(crate) fn parse_id(prefix: &str, id: &str) -> Option<u64> {
    let digits = id.strip_prefix(prefix)?.strip_prefix("_1B")?;
    (digits.len() == 14).then(|| u64::from_str_radix(digits, 16).ok())?
}

/// What a list call asks for.
#[derive(Debug, Clone)]
pub(crate) struct Query<'a> {
    pub(crate) account: Option<&'a str>,
    pub(crate) filters: Vec<(&'static str, String)>,
    /// Seconds since 1970.
    pub(crate) created: RangeInclusive<i64>,
    pub(crate) limit: usize,
    pub(crate) starting_after: Option<&'a str>,
    pub(crate) ending_before: Option<&'a str>,
    pub(crate) now_ms: i64,
}

#[derive(Debug)]
pub(crate) struct Table<T> {
    rows: Vec<T>,
    by_number: HashMap<u64, usize>,
    index: HashMap<(&'static str, String), Vec<usize>>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), by_number: HashMap::new(), index: HashMap::new() }
    }
}

impl<T: Record> Table<T> {
    /// Inserts, or replaces the object with the same number.
    pub(crate) fn put(&mut self, row: T) {
        let n = row.base().n;
        if let Some(at) = self.by_number.get(&n).copied() {
            if let Some(place) = self.rows.get_mut(at) {
                *place = row;
            }
            return;
        }
        let at = self.rows.len();
        for key in row.keys() {
            self.index.entry(key).or_default().push(at);
        }
        self.by_number.insert(n, at);
        self.rows.push(row);
    }

    pub(crate) fn number(&self, n: u64) -> Option<&T> {
        self.rows.get(*self.by_number.get(&n)?)
    }

    pub(crate) fn number_mut(&mut self, n: u64) -> Option<&mut T> {
        self.rows.get_mut(*self.by_number.get(&n)?)
    }

    /// The object, whether visible yet or not.
    pub(crate) fn find(&self, id: &str, account: Option<&str>) -> Option<&T> {
        let row = self.number(parse_id(T::PREFIX, id)?)?;
        (row.base().account.as_deref() == account).then_some(row)
    }

    pub(crate) fn rows(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.rows.iter()
    }

    /// One page, newest first, and whether more follow. `Err` carries a cursor that is not an object.
    pub(crate) fn page<'q>(&self, query: &Query<'q>) -> Result<(Vec<&T>, bool), &'q str> {
        let position = |cursor: Option<&'q str>| match cursor {
            None => Ok(None),
            Some(id) => {
                let at = parse_id(T::PREFIX, id).and_then(|n| self.by_number.get(&n).copied());
                at.map(Some).ok_or(id)
            }
        };
        let (below, above) = (position(query.starting_after)?, position(query.ending_before)?);
        let wanted = |at: &usize| {
            below.is_none_or(|below| *at < below)
                && above.is_none_or(|above| *at > above)
                && self.rows.get(*at).is_some_and(|row| self.matches(row, query))
        };
        let take = query.limit + 1;
        let most_selective =
            query.filters.iter().map(|key| self.index.get(key)).min_by_key(|hits| hits.map_or(0, Vec::len));
        // Walking from the cursor's side keeps a page cheap in a long table.
        let mut found: Vec<usize> = match (most_selective, above) {
            (Some(None), _) => Vec::new(),
            (Some(Some(hits)), None) => hits.iter().rev().copied().filter(wanted).take(take).collect(),
            (Some(Some(hits)), Some(_)) => hits.iter().copied().filter(wanted).take(take).collect(),
            (None, None) => (0..below.unwrap_or(self.rows.len())).rev().filter(wanted).take(take).collect(),
            (None, Some(above)) => (above + 1..self.rows.len()).filter(wanted).take(take).collect(),
        };
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        if above.is_some() {
            found.reverse();
        }
        Ok((found.into_iter().filter_map(|at| self.rows.get(at)).collect(), more))
    }

    fn matches(&self, row: &T, query: &Query<'_>) -> bool {
        let base = row.base();
        base.account.as_deref() == query.account
            && base.visible_ms <= query.now_ms
            && query.created.contains(&base.created())
            && (query.filters.is_empty() || {
                let keys = row.keys();
                query.filters.iter().all(|filter| keys.contains(filter))
            })
    }
}
