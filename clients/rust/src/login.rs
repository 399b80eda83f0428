//! What a client says in its hello: its token, and what it wants to be told.

use purview::wire::PROTOCOL_VERSION;
use purview::wire::client::Hello;

/// A client's identity and wishes. Made from a token: `"token".into()`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    token: String,
    crowd: bool,
}

impl Login {
    /// The client wants the crowd around its player, where the scene has it: see
    /// [`View::crowd`](crate::View::crowd).
    #[must_use]
    pub fn with_crowd(self) -> Login {
        Login { crowd: true, ..self }
    }

    pub(crate) fn hello(&self) -> Hello {
        Hello { version: PROTOCOL_VERSION, token: self.token.clone(), crowd: self.crowd }
    }
}

impl<T: AsRef<str> + ?Sized> From<&T> for Login {
    fn from(token: &T) -> Login {
        Login { token: token.as_ref().into(), crowd: false }
    }
}
