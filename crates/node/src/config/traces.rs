//! `[tracing]`: where spans of calls are sent.

use std::collections::BTreeMap;

use lightcone_outbound::Url;
use serde::{Deserialize, Deserializer};

/// Spans of calls for an OpenTelemetry collector.
#[derive(Clone, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tracing {
    /// Where they are sent, as OTLP over HTTP in protobuf; without it there are none.
    #[serde(deserialize_with = "url")]
    pub otlp_endpoint: Option<Url>,
    /// Which part of all traces is taken.
    pub sample_ratio: f64,
    /// What the collector knows this server by.
    pub service_name: String,
    /// Sent with each request to the collector, such as its key.
    pub headers: BTreeMap<String, String>,
}

impl Default for Tracing {
    fn default() -> Self {
        Self {
            otlp_endpoint: None,
            sample_ratio: 0.01,
            service_name: "lightcone".to_owned(),
            headers: BTreeMap::new(),
        }
    }
}

// The values of headers must not reach a log, nor what a URL may have beside host and path.
impl std::fmt::Debug for Tracing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let endpoint = self.otlp_endpoint.as_ref();
        f.debug_struct("Tracing")
            .field(
                "otlp_endpoint",
                &endpoint.map(|url| (url.host_str(), url.path())),
            )
            .field("sample_ratio", &self.sample_ratio)
            .field("service_name", &self.service_name)
            .field("headers", &self.headers.keys())
            .finish()
    }
}

impl Tracing {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(0.0..=1.0).contains(&self.sample_ratio) {
            return Err("tracing.sample-ratio must be from 0 to 1".to_owned());
        }
        let is_http = |url: &Url| matches!(url.scheme(), "http" | "https") && url.has_host();
        if self.otlp_endpoint.as_ref().is_some_and(|url| !is_http(url)) {
            return Err(
                "tracing.otlp-endpoint is no URL that begins with http:// or https://; it looks like \
                 \"http://127.0.0.1:4318/v1/traces\""
                    .to_owned(),
            );
        }
        for (name, value) in &self.headers {
            let is_name = http::HeaderName::from_bytes(name.as_bytes()).is_ok();
            if !is_name || http::HeaderValue::from_str(value).is_err() {
                return Err(format!(
                    "tracing.headers: {name:?} cannot be sent as a header"
                ));
            }
        }
        Ok(())
    }
}

fn url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Url>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    let url = text.map(|text| Url::parse(&text));
    url.transpose()
        .map_err(|error| serde::de::Error::custom(format!("tracing.otlp-endpoint: {error}")))
}
