//! An error with its causes, in one line.

/// The error and its causes, each that the text before does not end with already.
pub fn causes(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| {
        match text.ends_with(&cause) {
            true => text,
            false if text.is_empty() => cause,
            false => format!("{text}: {cause}"),
        }
    })
}

pub fn whole(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(e) = cause {
        text = format!("{text}: {e}");
        cause = e.source();
    }
    text
}
