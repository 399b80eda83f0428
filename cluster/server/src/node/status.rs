//! What a process is there for, and what it knows of its cluster.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Roles {
    pub regions: bool,
    pub gateway: bool,
}

impl Roles {
    pub const ALL: Roles = Roles { regions: true, gateway: true };
}

/// What a process knows of its cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    pub peers: usize,
    /// Regions of all scenes.
    pub regions: usize,
    /// Of these, those of which it is known where they run.
    pub located: usize,
    /// Of these, those that run here.
    pub here: usize,
    /// Of all, those that are down: their checkpoints cannot be read.
    pub down: usize,
    /// How often a region went on here from a checkpoint that was older than recovery assumes.
    pub recovered_late: u64,
    pub leads: bool,
    /// Whether this process is to give its regions to others.
    pub draining: bool,
    /// Whether it was to, and has.
    pub drained: bool,
}

impl Status {
    /// Whether every region can be reached.
    pub fn is_whole(&self) -> bool {
        self.regions > 0 && self.located == self.regions
    }
}
