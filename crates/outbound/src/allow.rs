//! Targets that the operator has named: they may be reached although their addresses are private.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    Network(IpNet),
    /// Whatever the name leads to.
    Host(String),
}

/// An entry that is no host, address or network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is neither a host name like \"billing.internal\", nor an address, nor a network like \"10.1.0.0/16\"")]
pub struct AllowRuleError(String);

impl AllowList {
    pub fn parse<'a>(
        entries: impl IntoIterator<Item = &'a str>,
    ) -> Result<AllowList, AllowRuleError> {
        let rules = entries.into_iter().map(str::parse);
        rules.collect::<Result<_, _>>().map(AllowList)
    }

    /// Whether the operator has listed this address, or this host that led to it.
    pub(crate) fn has(&self, host: &str, address: IpAddr) -> bool {
        let host = host.trim_end_matches('.');
        self.0.iter().any(|rule| match rule {
            Rule::Network(network) => network.contains(&address),
            Rule::Host(name) => name.eq_ignore_ascii_case(host),
        })
    }
}

impl FromStr for Rule {
    type Err = AllowRuleError;

    fn from_str(text: &str) -> Result<Rule, AllowRuleError> {
        if let Ok(network) = text.parse::<IpNet>() {
            return Ok(Rule::Network(network));
        }
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        if let Ok(address) = bare.parse::<IpAddr>() {
            return Ok(Rule::Network(address.into()));
        }
        let name = text.trim_end_matches('.');
        let is_name = name.len() <= 253
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
            // "10.1" and "127.1" look like names and are addresses in URLs.
            && name.bytes().any(|byte| byte.is_ascii_alphabetic());
        match is_name {
            true => Ok(Rule::Host(name.to_owned())),
            false => Err(AllowRuleError(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_reached() {
        let list = AllowList::parse([
            "10.1.0.0/16",
            "fd00::/8",
            "127.0.0.1",
            "[::1]",
            "billing.internal",
            "Other.Internal.",
        ])
        .expect("a list");
        let at = |host: &str, address: &str| list.has(host, address.parse().expect("an address"));
        assert!(at("x", "10.1.2.3"));
        assert!(!at("x", "10.2.2.3"));
        assert!(at("x", "fd12::1"));
        assert!(at("127.0.0.1", "127.0.0.1"));
        assert!(!at("127.0.0.2", "127.0.0.2"));
        assert!(at("::1", "::1"));
        assert!(at("billing.internal", "192.168.0.1"));
        assert!(at("BILLING.internal.", "192.168.0.1"));
        assert!(!at("evil.billing.internal", "192.168.0.1"));
        assert!(at("other.internal", "192.168.0.1"));
    }

    #[test]
    fn what_means_nothing_is_refused() {
        for text in ["", "http://x", "x:80", "10.1", "a b", "10.0.0.0/33", "*"] {
            let error = AllowList::parse([text]).expect_err(text);
            assert!(error
                .to_string()
                .starts_with(&format!("\"{text}\" is neither")));
        }
    }
}
