//! Lists: `PageSize`, `Page`, `PageToken` and the `meta` that names the pages.

use serde_json::{Value, json};

use super::error::ApiError;
use crate::stripe::Params;

/// Page size without a wish.
const DEFAULT: usize = 50;

/// Largest page.
const LARGEST: usize = 100;

/// One page of `items`, which are in order of creation and carry their numbers. A token is the number of the last
/// item of the page before, so that what joins or leaves meanwhile neither repeats nor hides another.
pub(crate) fn page<T>(
    key: &str,
    url: &str,
    params: &Params,
    items: &[(u64, T)],
    render: impl Fn(&T) -> Value,
) -> Result<Value, ApiError> {
    let size = match params.get("PageSize") {
        None => DEFAULT,
        Some(text) => text
            .parse()
            .ok()
            .filter(|size| (1..=LARGEST).contains(size))
            .ok_or_else(|| ApiError::parameter("Invalid PageSize: must be between 1 and 100"))?,
    };
    let number = params.int("Page").unwrap_or(0);
    let after = match (params.get("PageToken"), number) {
        (Some(token), _) => token
            .strip_prefix("PT")
            .and_then(|text| text.parse::<u64>().ok())
            .ok_or_else(|| ApiError::parameter("Invalid PageToken"))?,
        (None, ..1) => 0,
        (None, _) => return Err(ApiError::parameter("A page after the first needs its PageToken")),
    };
    let rest: Vec<&(u64, T)> = items.iter().filter(|(n, _)| *n > after).collect();
    let shown = rest.get(..size.min(rest.len())).unwrap_or_default();
    let link = |page: i64, token: Option<u64>| {
        let token = token.map(|token| format!("&PageToken=PT{token}")).unwrap_or_default();
        format!("{url}?PageSize={size}&Page={page}{token}")
    };
    let next = (rest.len() > size).then(|| shown.last().map(|(n, _)| link(number + 1, Some(*n)))).flatten();
    Ok(json!({
        key: shown.iter().map(|(_, item)| render(item)).collect::<Vec<_>>(),
        "meta": {
            "page": number,
            "page_size": size,
            "first_page_url": link(0, None),
            "previous_page_url": (number > 0).then(|| link(0, None)),
            "url": link(number, (after > 0).then_some(after)),
            "next_page_url": next,
            "key": key,
        },
    }))
}
