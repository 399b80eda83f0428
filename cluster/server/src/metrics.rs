//! Metric families for [`prometheus_client`]: one line of code per family. Each part of the process
//! implements [`Collector`] for its own counters, and the console encodes all of them when it is
//! asked.
//!
//! Names begin with `purview_` and end with their unit; the encoder appends `_total` to counters. A
//! label's values are few and stable: names of scenes, nodes and reasons, never addresses or process
//! numbers. What must never happen here: a lock that a tick waits for.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RegionSeries {
    #[default]
    All,
    /// The busiest ones, for gauges.
    Top,
    /// None.
    Off,
}

pub use prometheus_client::collector::Collector;
pub(crate) use prometheus_client::encoding::prometheus_text::CONTENT_TYPE;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric, MetricEncoder,
    prometheus_text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
pub(crate) use prometheus_client::registry::Registry;

pub(crate) type Labels<'l> = [(&'l str, &'l str)];

/// Writes metric families, each with its help and type.
pub(crate) struct Families<'e>(DescriptorEncoder<'e>);

impl<'e> From<DescriptorEncoder<'e>> for Families<'e> {
    fn from(encoder: DescriptorEncoder<'e>) -> Families<'e> {
        Families(encoder)
    }
}

impl Families<'_> {
    /// Writes a counter without labels; the name is without `_total`.
    pub(crate) fn counter(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(encoder)
    }

    pub(crate) fn gauge(
        &mut self,
        name: &str,
        help: &str,
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        let encoder = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(encoder)
    }

    /// Writes counters without labels, each by its name after `prefix`, its help and its value.
    pub(crate) fn counters_of(
        &mut self,
        prefix: &str,
        all: &[(&str, &str, &AtomicU64)],
    ) -> fmt::Result {
        all.iter().try_for_each(|(name, help, value)| {
            self.counter(&format!("{prefix}_{name}"), help, value.load(Relaxed))
        })
    }

    /// Begins a family of counters that differ by labels; the name is without `_total`.
    pub(crate) fn counters<'f>(
        &'f mut self,
        name: &'f str,
        help: &str,
    ) -> Result<Samples<'f>, fmt::Error> {
        self.family(name, help, MetricType::Counter)
    }

    /// Begins a family of gauges that differ by labels.
    pub(crate) fn gauges<'f>(
        &'f mut self,
        name: &'f str,
        help: &str,
    ) -> Result<Samples<'f>, fmt::Error> {
        self.family(name, help, MetricType::Gauge)
    }

    pub(crate) fn family<'f>(
        &'f mut self,
        name: &'f str,
        help: &str,
        kind: MetricType,
    ) -> Result<Samples<'f>, fmt::Error> {
        Ok(Samples(self.0.encode_descriptor(name, help, None, kind)?))
    }

    /// Writes a gauge that is always 1 and carries facts as labels; the name is without `_info`.
    pub(crate) fn info(&mut self, name: &str, help: &str, facts: &Labels<'_>) -> fmt::Result {
        let mut encoder = self.0.encode_descriptor(name, help, None, MetricType::Info)?;
        encoder.encode_info(&facts)
    }
}

pub(crate) struct Samples<'f>(MetricEncoder<'f>);

impl Samples<'_> {
    pub(crate) fn counter(
        &mut self,
        labels: &Labels<'_>,
        value: impl EncodeCounterValue,
    ) -> fmt::Result {
        ConstCounter::new(value).encode(self.0.encode_family(&labels)?)
    }

    pub(crate) fn gauge(
        &mut self,
        labels: &Labels<'_>,
        value: impl EncodeGaugeValue,
    ) -> fmt::Result {
        ConstGauge::new(value).encode(self.0.encode_family(&labels)?)
    }

    /// Adds a histogram: each bucket is its upper bound and how many values are in it alone.
    pub(crate) fn histogram(
        &mut self,
        labels: &Labels<'_>,
        sum: f64,
        buckets: &[(f64, u64)],
    ) -> fmt::Result {
        let count = buckets.iter().map(|(_, n)| n).sum();
        let mut encoder = self.0.encode_family(&labels)?;
        encoder.encode_histogram::<[(&str, &str); 0]>(sum, count, buckets, None)
    }
}

/// The text of these metrics, in the Prometheus text format.
pub(crate) fn text(registry: &Registry) -> Result<String, fmt::Error> {
    let mut text = String::with_capacity(16 << 10);
    prometheus_text::encode(&mut text, registry)?;
    Ok(text)
}

pub(crate) fn registry(collectors: impl IntoIterator<Item = Box<dyn Collector>>) -> Registry {
    let mut registry = Registry::default();
    collectors.into_iter().for_each(|collector| registry.register_collector(collector));
    registry
}

#[cfg(test)]
pub(crate) fn text_of(collector: impl Collector) -> String {
    text(&registry([Box::new(collector) as Box<dyn Collector>])).expect("the collector writes")
}
