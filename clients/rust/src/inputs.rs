//! The numbered inputs, as methods of all that send them.

/// Methods that send inputs through `input` of `self`, or of a field of it.
macro_rules! inputs {
    ($errors:literal $(, $by:ident)?) => {
        /// Sends a new position (centimetres), in a scene that trusts positions. Returns the
        /// input's number, which a frame's `ack` reaches once it is applied.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn send_move(&mut self, pos: purview::scene::Pos) -> Result<Seq, ClientError> {
            self$(.$by)?.input(|seq| purview::wire::client::Move { seq, pos }.into()).await
        }

        /// Sends the commands that a [`Walker`](crate::Walker) has at `now`, in a scene that judges
        /// moves. Call it in every frame of the game.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn walk<T: purview::scene::movement::Tiles>(
            &mut self,
            now: purview::scene::movement::ClientMs,
            walker: &mut crate::Walker<T>,
        ) -> Result<(), ClientError> {
            while let Some(order) = walker.poll(now, self$(.$by)?.next_seq()) {
                self.send_walk(&order).await?;
            }
            Ok(())
        }

        /// Sends one move command as it is. Returns the input's number.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn send_walk(
            &mut self,
            order: &purview::scene::movement::MoveCommand,
        ) -> Result<Seq, ClientError> {
            self$(.$by)?.input(|seq| purview::wire::client::Walk::of(seq, order).into()).await
        }

        /// Teleports; `None` keeps the scene or plane. Returns the input's number.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn teleport(
            &mut self,
            scene: Option<String>,
            plane: Option<purview::scene::Plane>,
            pos: purview::scene::Pos,
        ) -> Result<Seq, ClientError> {
            let teleport = |seq| purview::wire::client::Teleport { seq, scene, plane, pos }.into();
            self$(.$by)?.input(teleport).await
        }

        /// Turns the player, walking or standing. Returns the input's number.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn face(&mut self, facing: purview::scene::Facing) -> Result<Seq, ClientError> {
            self$(.$by)?.input(|seq| purview::wire::client::Face { seq, facing }.into()).await
        }

        /// Gives a property of the player a value. Returns the input's number.
        ///
        /// # Errors
        #[doc = $errors]
        pub async fn set(
            &mut self,
            property: purview::scene::properties::PropertyId,
            value: purview::scene::properties::Value,
        ) -> Result<Seq, ClientError> {
            let set = |seq| purview::wire::client::Set { seq, property, value }.into();
            self$(.$by)?.input(set).await
        }
    };
}

pub(crate) use inputs;
