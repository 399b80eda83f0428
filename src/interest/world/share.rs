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

/// The same for the indices below `len`: `work` gets the range of its part.
pub fn share_range<R: Send>(
    least: (&dyn Workers, usize),
    len: usize,
    work: impl Fn(std::ops::Range<usize>) -> R + Sync,
) -> Vec<R> {
    share(least, &mut vec![(); len], |first, part| work(first..first + part.len()))
}

/// Calls `work` with each item and its index, and returns the results in order: a task for each item,
/// if that `is_worth` the threads.
pub fn each<T: Send, R: Send>(
    (workers, is_worth): (&dyn Workers, bool),
    items: &mut [T],
    work: impl Fn(usize, &mut T) -> R + Sync,
) -> Vec<R> {
    if workers.threads() < 2 || !(is_worth || cfg!(test)) {
        return items.iter_mut().enumerate().map(|(at, item)| work(at, item)).collect();
    }
    let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
    workers::share(workers, items, &mut results, |result, at, item| {
        *result = item.first_mut().map(|item| work(at, item));
    });
    results.into_iter().flatten().collect()
}
