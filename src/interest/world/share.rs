//! Sharing work among threads. The parts are contiguous and their results come in order, so that an
//! outcome does not depend on the number of threads.

use crate::scene::workers::{self, Workers};

/// Splits `items` into parts of at least `least` items, calls `work` for each with the index of its
/// first item, and returns the results in order.
pub fn share<T: Send, R: Send>(
    (workers, least): (&dyn Workers, usize),
    items: &mut [T],
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    // Tests share the least work too.
    let least = if cfg!(test) { 1 } else { least };
    let parts = workers::parts(workers, items.len(), least);
    let mut results: Vec<Option<R>> = (0..parts).map(|_| None).collect();
    workers::share(workers, items, &mut results, |result, first, part| {
        *result = Some(work(first, part));
    });
    results.into_iter().flatten().collect()
}
