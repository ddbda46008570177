//! Accepted parameters per endpoint. Names follow Stripe's API reference; the ones whose effect the
//! sandbox does not model are accepted and ignored.

use super::params::Param;
use super::params::Shape::{Amount, Currency, Flag, Limit, List, Metadata, OneOf, Open, Range, Text};
use super::params::{optional, required};

const SOURCE_TYPES: &[&str] = &["bank_account", "card", "fpx"];

/// Only `expand`.
pub(crate) const RETRIEVE: &[Param] = &[optional("expand", List)];

pub(crate) const TRANSFER: &[Param] = &[
    required("currency", Currency),
    required("destination", Text(255)),
    optional("amount", Amount),
    optional("description", Text(1_000)),
    optional("expand", List),
    optional("metadata", Metadata),
    optional("source_transaction", Text(255)),
    optional("source_type", OneOf(SOURCE_TYPES)),
    optional("transfer_group", Text(255)),
];

pub(crate) const TRANSFERS: &[Param] = &[
    optional("created", Range),
    optional("destination", Text(255)),
    optional("ending_before", Text(255)),
    optional("expand", List),
    optional("limit", Limit),
    optional("starting_after", Text(255)),
    optional("transfer_group", Text(255)),
];

pub(crate) const REVERSAL: &[Param] = &[
    optional("amount", Amount),
    optional("description", Text(1_000)),
    optional("expand", List),
    optional("metadata", Metadata),
    optional("refund_application_fee", Flag),
];

/// A page without filters of its own.
pub(crate) const PAGE: &[Param] = &[
    optional("ending_before", Text(255)),
    optional("expand", List),
    optional("limit", Limit),
    optional("starting_after", Text(255)),
];

pub(crate) const PAYOUT: &[Param] = &[
    required("amount", Amount),
    required("currency", Currency),
    optional("description", Text(1_000)),
    optional("destination", Text(255)),
    optional("expand", List),
    optional("metadata", Metadata),
    optional("method", OneOf(&["instant", "standard"])),
    optional("payout_method", Text(255)),
    optional("source_type", OneOf(SOURCE_TYPES)),
    optional("statement_descriptor", Text(22)),
];

pub(crate) const PAYOUTS: &[Param] = &[
    optional("arrival_date", Range),
    optional("created", Range),
    optional("destination", Text(255)),
    optional("ending_before", Text(255)),
    optional("expand", List),
    optional("limit", Limit),
    optional("starting_after", Text(255)),
    optional("status", OneOf(&["canceled", "failed", "in_transit", "paid", "pending"])),
];

pub(crate) const INTENT: &[Param] = &[
    required("amount", Amount),
    required("currency", Currency),
    optional("application_fee_amount", Amount),
    optional("automatic_payment_methods", Open),
    optional("capture_method", OneOf(&["automatic", "automatic_async", "manual"])),
    optional("confirm", Flag),
    optional("confirmation_method", OneOf(&["automatic", "manual"])),
    optional("customer", Text(255)),
    optional("description", Text(1_000)),
    optional("error_on_requires_action", Flag),
    optional("expand", List),
    optional("metadata", Metadata),
    optional("off_session", Open),
    optional("on_behalf_of", Text(255)),
    optional("payment_method", Text(255)),
    optional("payment_method_options", Open),
    optional("payment_method_types", List),
    optional("receipt_email", Text(512)),
    optional("return_url", Text(2_048)),
    optional("setup_future_usage", OneOf(&["off_session", "on_session"])),
    optional("shipping", Open),
    optional("statement_descriptor", Text(22)),
    optional("statement_descriptor_suffix", Text(22)),
    optional("transfer_data[amount]", Amount),
    optional("transfer_data[destination]", Text(255)),
    optional("transfer_group", Text(255)),
];

pub(crate) const CONFIRM: &[Param] = &[
    optional("capture_method", OneOf(&["automatic", "automatic_async", "manual"])),
    optional("error_on_requires_action", Flag),
    optional("expand", List),
    optional("off_session", Open),
    optional("payment_method", Text(255)),
    optional("payment_method_options", Open),
    optional("return_url", Text(2_048)),
];

pub(crate) const CANCEL: &[Param] = &[
    optional(
        "cancellation_reason",
        OneOf(&["abandoned", "duplicate", "fraudulent", "requested_by_customer"]),
    ),
    optional("expand", List),
];

pub(crate) const CAPTURE: &[Param] = &[
    optional("amount_to_capture", Amount),
    optional("application_fee_amount", Amount),
    optional("expand", List),
    optional("metadata", Metadata),
];

pub(crate) const INTENTS: &[Param] = &[
    optional("created", Range),
    optional("customer", Text(255)),
    optional("ending_before", Text(255)),
    optional("expand", List),
    optional("limit", Limit),
    optional("starting_after", Text(255)),
];

pub(crate) const SEARCH: &[Param] = &[
    required("query", Text(5_000)),
    optional("expand", List),
    optional("limit", Limit),
    optional("page", Text(255)),
];

pub(crate) const REFUND: &[Param] = &[
    optional("amount", Amount),
    optional("charge", Text(255)),
    optional("expand", List),
    optional("instructions_email", Text(512)),
    optional("metadata", Metadata),
    optional("payment_intent", Text(255)),
    optional("reason", OneOf(&["duplicate", "fraudulent", "requested_by_customer"])),
    optional("refund_application_fee", Flag),
    optional("reverse_transfer", Flag),
];

pub(crate) const REFUNDS: &[Param] = &[
    optional("charge", Text(255)),
    optional("created", Range),
    optional("ending_before", Text(255)),
    optional("expand", List),
    optional("limit", Limit),
    optional("payment_intent", Text(255)),
    optional("starting_after", Text(255)),
];
