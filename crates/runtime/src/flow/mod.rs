//! Flow control: provider budgets shared by the fleet, and what one process may have open.

mod budget;
mod capacity;
mod gate;

pub(crate) use budget::Budgets;
pub use budget::ProviderBudget;
pub use capacity::{Capacity, refuse_zero};
pub(crate) use gate::RequestGate;
