//! Sharing work among threads. The parts are contiguous and their results come in order, so that an
//! outcome does not depend on the number of threads.

/// Splits `items` into at most `threads` parts of at least `least` items, calls `work` for each with
/// the index of its first item, and returns the results in order. One part runs on this thread.
pub fn share<T: Send, R: Send>(
    (threads, least): (usize, usize),
    items: &mut [T],
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    // Tests share the least work too.
    let least = if cfg!(test) { 1 } else { least.max(1) };
    let parts = threads.min(items.len() / least).max(1);
    if parts == 1 {
        return vec![work(0, items)];
    }
    let size = items.len().div_ceil(parts);
    let mut chunks = items.chunks_mut(size).enumerate();
    let first = chunks.next();
    std::thread::scope(|scope| {
        let work = &work;
        let others: Vec<_> =
            chunks.map(|(part, chunk)| scope.spawn(move || work(part * size, chunk))).collect();
        let mut results: Vec<R> = first.map(|(_, chunk)| work(0, chunk)).into_iter().collect();
        for other in others {
            match other.join() {
                Ok(result) => results.push(result),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        results
    })
}
