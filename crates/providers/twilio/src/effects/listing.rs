//! The participant list, page by page.

use std::collections::BTreeMap;

use backline_failure::{Call, Failure};
use serde::Deserialize;
use url::Url;

use super::check_conversation;
use crate::failure_table::{Asked, Fact, out_of_place, unreadable};
use crate::transport::Said;
use crate::{ConversationSid, Participant, ParticipantSid, Twilio};

/// Participants of one page, the most that Twilio gives.
const PAGE: &str = "100";

/// Pages of one list. A conversation has at most 1,000 participants, which are ten pages; twice that is an answer
/// that goes round in circles.
const PAGES: usize = 20;

#[derive(Deserialize)]
struct Page {
    participants: Vec<Participant>,
    meta: Meta,
}

#[derive(Deserialize)]
struct Meta {
    next_page_url: Option<String>,
}

/// Every participant, in the order of their SIDs, or `None` if Twilio says that there is no such conversation. A list
/// is no snapshot: it may miss who joined in the last moments and show who left in them.
///
/// # Errors
/// Never unknown: a read has no effect. A list that cannot be read to its end is an error and not a short list.
pub async fn list_participants(
    twilio: &Twilio,
    call: &Call,
    conversation: &ConversationSid,
) -> Result<Option<Vec<Participant>>, Failure> {
    let first = twilio.url(&[conversation.as_str(), "Participants"])?;
    // By SID: a member who joins meanwhile may push another onto two pages.
    let mut found: BTreeMap<ParticipantSid, Participant> = BTreeMap::new();
    let mut url = first.clone();
    url.query_pairs_mut().append_pair("PageSize", PAGE);
    for _ in 0..PAGES {
        let reply = match twilio.get(call, url).await? {
            Said::Yes(reply) => reply,
            Said::Already(Fact::Absent, _) => return Ok(None),
            Said::Already(fact, reply) => return Err(out_of_place(&reply, fact)),
        };
        let page: Page = reply.parse(Asked::Read)?;
        for participant in page.participants {
            check_conversation(&reply, Asked::Read, conversation, &participant)?;
            found.insert(participant.sid.clone(), participant);
        }
        let Some(next) = page.meta.next_page_url else {
            return Ok(Some(found.into_values().collect()));
        };
        url = follow(&first, &next)
            .ok_or_else(|| unreadable(&reply, Asked::Read, "twilio.foreign_page", "next_page_url"))?;
    }
    Err(Failure::transient("twilio.list_too_long").with_detail("more than 20 pages of participants"))
}

/// The next page of the same list. Only the query is taken from what Twilio says, so that credentials go to the
/// configured host and nowhere else.
fn follow(first: &Url, next: &str) -> Option<Url> {
    let next = Url::parse(next).ok()?;
    // A base URL may carry a path of its own that the provider does not know of.
    let same = first.path().ends_with(next.path()) && next.path().ends_with("/Participants");
    let mut url = first.clone();
    url.set_query(Some(next.query().filter(|query| !query.is_empty())?));
    same.then_some(url)
}

#[cfg(test)]
mod tests {
    use super::follow;
    use url::Url;

    #[test]
    fn only_the_query_of_the_same_list_is_followed() {
        let next = |text: &str| {
            let first = Url::parse("http://127.0.0.1:9/v1/Conversations/CH1/Participants").ok();
            first.and_then(|first| follow(&first, text)).map(String::from)
        };
        let ours = "http://127.0.0.1:9/v1/Conversations/CH1/Participants?PageSize=100&Page=1&PageToken=PT1";
        let theirs = "https://conversations.twilio.com/v1/Conversations/CH1/Participants?PageSize=100&Page=1&PageToken=PT1";
        assert_eq!(next(theirs).as_deref(), Some(ours));
        for foreign in [
            "https://evil.example/v1/Conversations/CH2/Participants?Page=1",
            "https://evil.example/steal?Page=1",
            "http://127.0.0.1:9/v1/Conversations/CH1/Participants",
            "/v1/Conversations/CH1/Participants?Page=1",
            "",
        ] {
            assert_eq!(next(foreign), None, "{foreign}");
        }
    }
}
