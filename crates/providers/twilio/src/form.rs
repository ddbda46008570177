use url::form_urlencoded::Serializer;

/// A form body in the order given: pairs without a value are left out, because Twilio takes an empty value for a wish.
pub(crate) fn form(pairs: &[(&str, Option<&str>)]) -> String {
    let mut form = Serializer::new(String::new());
    for (name, value) in pairs {
        if let Some(value) = value {
            form.append_pair(name, value);
        }
    }
    form.finish()
}

#[cfg(test)]
mod tests {
    #[test]
    fn pairs_are_encoded_and_absent_ones_left_out() {
        let pairs = [("MessagingBinding.Address", Some("+1 5&5")), ("Attributes", None)];
        assert_eq!(super::form(&pairs), "MessagingBinding.Address=%2B1+5%265");
    }
}
