//! Paths of the API.

/// A named call; ids are borrowed from the path and may be SIDs, unique names or identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint<'a> {
    CreateConversation,
    ListConversations,
    FetchConversation(&'a str),
    UpdateConversation(&'a str),
    DeleteConversation(&'a str),
    AddParticipant(&'a str),
    ListParticipants(&'a str),
    FetchParticipant { conversation: &'a str, id: &'a str },
    RemoveParticipant { conversation: &'a str, id: &'a str },
}

/// Whether a path is Twilio's. Stripe's paths are lower-case.
pub(crate) fn serves(path: &str) -> bool {
    path == "/v1/Conversations" || path.starts_with("/v1/Conversations/")
}

impl<'a> Endpoint<'a> {
    /// The call behind a method and the decoded segments of a path, if there is one.
    pub(crate) fn route(method: &str, segments: &'a [String]) -> Option<Self> {
        let parts: Vec<&str> = segments.iter().map(String::as_str).collect();
        Some(match (method, parts.as_slice()) {
            ("POST", ["v1", "Conversations"]) => Self::CreateConversation,
            ("GET", ["v1", "Conversations"]) => Self::ListConversations,
            ("GET", ["v1", "Conversations", id]) => Self::FetchConversation(id),
            ("POST", ["v1", "Conversations", id]) => Self::UpdateConversation(id),
            ("DELETE", ["v1", "Conversations", id]) => Self::DeleteConversation(id),
            ("POST", ["v1", "Conversations", id, "Participants"]) => Self::AddParticipant(id),
            ("GET", ["v1", "Conversations", id, "Participants"]) => Self::ListParticipants(id),
            ("GET", ["v1", "Conversations", conversation, "Participants", id]) => {
                Self::FetchParticipant { conversation, id }
            }
            ("DELETE", ["v1", "Conversations", conversation, "Participants", id]) => {
                Self::RemoveParticipant { conversation, id }
            }
            _ => return None,
        })
    }

    /// What the journal and fault rules call it.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Self::CreateConversation => "conversation.create",
            Self::ListConversations => "conversation.list",
            Self::FetchConversation(_) => "conversation.fetch",
            Self::UpdateConversation(_) => "conversation.update",
            Self::DeleteConversation(_) => "conversation.delete",
            Self::AddParticipant(_) => "participant.add",
            Self::ListParticipants(_) => "participant.list",
            Self::FetchParticipant { .. } => "participant.fetch",
            Self::RemoveParticipant { .. } => "participant.remove",
        }
    }

    /// The conversation that the path names.
    pub(crate) fn conversation(self) -> Option<&'a str> {
        match self {
            Self::CreateConversation | Self::ListConversations => None,
            Self::FetchConversation(id)
            | Self::UpdateConversation(id)
            | Self::DeleteConversation(id)
            | Self::AddParticipant(id)
            | Self::ListParticipants(id) => Some(id),
            Self::FetchParticipant { conversation, .. } | Self::RemoveParticipant { conversation, .. } => {
                Some(conversation)
            }
        }
    }

    /// Parameters it takes.
    pub(crate) fn parameters(self) -> &'static [&'static str] {
        const CONVERSATION: &[&str] = &[
            "FriendlyName",
            "UniqueName",
            "Attributes",
            "MessagingServiceSid",
            "State",
            "Timers.Inactive",
            "Timers.Closed",
        ];
        match self {
            Self::CreateConversation | Self::UpdateConversation(_) => CONVERSATION,
            Self::AddParticipant(_) => &[
                "Identity",
                "MessagingBinding.Address",
                "MessagingBinding.ProxyAddress",
                "Attributes",
                "RoleSid",
            ],
            Self::ListConversations | Self::ListParticipants(_) => &["PageSize", "Page", "PageToken"],
            _ => &[],
        }
    }
}
