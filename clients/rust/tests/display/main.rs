//! Smooth display: its quality on simulated networks, and the vectors for clients in all languages.

mod quality;
mod truth;
mod vectors;
