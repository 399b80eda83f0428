//! The two clocks of a move, as two types: a client's time can never be used as the server's.

use serde::{Deserialize, Serialize};

macro_rules! clock {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Milliseconds since `earlier`; 0 when that is later.
            #[inline]
            pub fn since(self, earlier: $name) -> u64 {
                self.0.saturating_sub(earlier.0)
            }

            /// The moment `ms` milliseconds later.
            #[inline]
            pub fn plus(self, ms: u64) -> $name {
                $name(self.0.saturating_add(ms))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, "{} ms", self.0)
            }
        }
    };
}

clock! {
    /// The server's clock: milliseconds since its start. In a region this is the tick's time: the
    /// tick's number times the milliseconds per tick.
    ServerMs
}
clock! {
    /// One client's clock: milliseconds since a moment that the client chooses. It never goes back,
    /// and need not agree with any other clock.
    ClientMs
}
