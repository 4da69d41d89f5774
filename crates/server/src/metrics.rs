//! What the server counts about HTTP.

use std::sync::OnceLock;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    method: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabel {
    route: String,
}

#[derive(Clone)]
pub(crate) struct HttpMetrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabel, Histogram>,
    pub(crate) in_flight: Gauge,
}

impl HttpMetrics {
    pub(crate) fn register(registry: &mut Registry) -> Self {
        // 50 µs to 13 s, doubling.
        let latency = || Histogram::new((0..18).map(|i| 50e-6 * f64::from(1 << i)));
        let metrics = Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(latency),
            in_flight: Gauge::default(),
        };
        registry.register("http_requests", "Requests answered", metrics.requests.clone());
        registry.register("http_request_seconds", "Time from head to answer", metrics.seconds.clone());
        registry.register("http_requests_in_flight", "Requests under way", metrics.in_flight.clone());
        metrics
    }

    pub(crate) fn of(&self, route: &str, method: &str) -> RouteMetrics {
        let seconds = self.seconds.get_or_create_owned(&RouteLabel { route: route.into() });
        RouteMetrics {
            requests: self.requests.clone(),
            seconds,
            route: route.into(),
            method: method.into(),
            by_class: Default::default(),
        }
    }
}

/// The metrics of one route and method, looked up once.
pub(crate) struct RouteMetrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Histogram,
    route: String,
    method: String,
    by_class: [OnceLock<Counter>; CLASSES.len()],
}

const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

impl RouteMetrics {
    pub(crate) fn answered(&self, status: StatusCode, took: Duration) {
        self.seconds.observe(took.as_secs_f64());
        let class = usize::from(status.as_u16() / 100).clamp(1, CLASSES.len()) - 1;
        self.by_class[class].get_or_init(|| self.counter(CLASSES[class])).inc();
    }

    fn counter(&self, status: &'static str) -> Counter {
        let labels = RequestLabels { route: self.route.clone(), method: self.method.clone(), status };
        self.requests.get_or_create_owned(&labels)
    }
}
