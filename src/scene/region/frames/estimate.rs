//! The velocity of an entity, estimated from its positions: where clients send positions, viewers
//! extrapolate by this.
//!
//! Positions come from clients, so some ticks bring none and the next one two: the mean of a few ticks
//! is right then, the last step is not. After a turn, a start or a jump the last step is right.

use crate::scene::Pos;

/// Ticks over which a velocity is averaged at most.
const TICKS: usize = 4;

/// Positions of an entity at the ends of the last ticks, the newest first.
#[derive(Debug, Clone, Copy)]
pub struct PastPositions {
    at: [Pos; TICKS],
    known: usize,
}

/// Longer steps count as this long, centimetres, where directions are compared.
const STEP_MAX_CM: i64 = 1 << 24;

/// Steps along x and z, centimetres.
type Step = (i64, i64);

fn step(from: Pos, to: Pos) -> Step {
    (i64::from(to.x) - i64::from(from.x), i64::from(to.z) - i64::from(from.z))
}

fn length2((x, z): Step) -> i128 {
    i128::from(x).pow(2) + i128::from(z).pow(2)
}

/// Whether two steps go in different directions, by more than 18 degrees.
fn is_turn(a: Step, b: Step) -> bool {
    let short = |(x, z): Step| [x, z].map(|d| i128::from(d.clamp(-STEP_MAX_CM, STEP_MAX_CM)));
    let (a, b) = (short(a), short(b));
    let dot = |a: [i128; 2], b: [i128; 2]| a[0] * b[0] + a[1] * b[1];
    let along = dot(a, b);
    along <= 0 || 10 * along.pow(2) < 9 * dot(a, a) * dot(b, b)
}

/// A way in so many ticks as a velocity, centimetres per second.
fn per_s((x, z): Step, ticks: u64, tick_ms: u32) -> (i32, i32) {
    let ms = (i128::from(ticks) * i128::from(tick_ms)).max(1);
    let along = |cm: i64| {
        let half = if cm < 0 { -ms / 2 } else { ms / 2 };
        let v = (i128::from(cm) * 1_000 + half) / ms;
        v.clamp(i32::MIN.into(), i32::MAX.into()) as i32
    };
    (along(x), along(z))
}

/// Whether two steps differ by a quarter of the first one at most.
fn are_alike(a: Step, b: Step) -> bool {
    16 * length2((a.0 - b.0, a.1 - b.1)) <= length2(a)
}

impl PastPositions {
    /// An entity of which only the position is known.
    pub fn of(pos: Pos) -> PastPositions {
        PastPositions { at: [pos; TICKS], known: 0 }
    }

    /// The position at the end of the last tick.
    pub fn last(&self) -> Pos {
        self.at[0]
    }

    /// Whether the entity has stood at `pos` in all ticks that count.
    pub fn rests_at(&self, pos: Pos) -> bool {
        self.known == TICKS && self.at.iter().all(|at| *at == pos)
    }

    /// Another tick ends. What was before a step of more than `jump_cm` does not count any more.
    pub fn push(&mut self, pos: Pos, jump_cm: i64) {
        if length2(step(self.at[0], pos)) > i128::from(jump_cm).pow(2) {
            *self = PastPositions::of(pos);
        }
        self.at.copy_within(..TICKS - 1, 1);
        self.at[0] = pos;
        self.known = (self.known + 1).min(TICKS);
    }

    /// The velocity of an entity that has come to `pos` in this tick, centimetres per second along x and
    /// z. A step of more than `jump_cm` is no walk: the entity stands then. The last estimate was made at
    /// a position, so many ticks ago: if the entity has gone straight on since then, that way is the best measure.
    pub fn velocity(
        &self,
        pos: Pos,
        tick_ms: u32,
        jump_cm: i64,
        (begun, ago): (Pos, u64),
    ) -> (i32, i32) {
        let ticks = self.ticks_to_average(pos);
        let last = step(self.at[0], pos);
        if ticks == 0 || length2(last) > i128::from(jump_cm).pow(2) {
            return (0, 0);
        }
        let lately = per_s(step(self.at[ticks - 1], pos), ticks as u64, tick_ms);
        let in_all = per_s(step(begun, pos), ago, tick_ms);
        let wide = |(x, z): (i32, i32)| (i64::from(x), i64::from(z));
        let (short, long) = (wide(lately), wide(in_all));
        let differ2 = length2((short.0 - long.0, short.1 - long.1));
        let straight = ago > 2 * TICKS as u64 && 256 * differ2 <= length2(short);
        if straight { in_all } else { lately }
    }

    /// Over how many ticks the velocity is to be averaged; 0: the entity stands.
    fn ticks_to_average(&self, pos: Pos) -> usize {
        let (new, old) = (step(self.at[0], pos), step(self.at[1], self.at[0]));
        match (new == (0, 0), old == (0, 0)) {
            _ if self.known < 2 => self.known,
            (true, true) => 0,
            (false, true) if self.at[..self.known].iter().all(|at| *at == self.at[0]) => 1,
            (false, false) if is_turn(new, old) => 1,
            (false, false) if are_alike(new, old) => 2,
            // A tick without an input, or one with two.
            _ => self.known,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The velocity at the last of these x coordinates, one a tick of 100 ms.
    fn velocity(xs: &[i32]) -> (i32, i32) {
        let mut past = PastPositions::of(Pos::ground(xs[0], 0));
        let (last, before) = xs.split_last().unwrap();
        before.iter().for_each(|x| past.push(Pos::ground(*x, 0), 10_000));
        past.velocity(Pos::ground(*last, 0), 100, 10_000, (Pos::ground(*last, 0), 0))
    }

    #[test]
    fn a_steady_walk_has_its_velocity_and_a_start_the_one_of_its_first_step() {
        assert_eq!(velocity(&[0, 60, 120, 180, 240]), (600, 0));
        assert_eq!(velocity(&[0, 0, 0, 0, 0, 60]), (600, 0));
        assert_eq!(velocity(&[0, -60]), (-600, 0));
        assert_eq!(velocity(&[5]), (0, 0));
    }

    #[test]
    fn a_tick_without_an_input_and_one_with_two_keep_the_velocity() {
        assert_eq!(velocity(&[0, 60, 120, 180, 180]), (450, 0));
        assert_eq!(velocity(&[0, 60, 120, 180, 180, 300]), (600, 0));
        assert_eq!(velocity(&[0, 60, 120, 180, 180, 300, 360, 420]), (600, 0));
    }

    #[test]
    fn two_ticks_without_an_input_are_a_stop() {
        assert_eq!(velocity(&[0, 60, 120, 120, 120]), (0, 0));
    }

    #[test]
    fn a_turn_has_the_velocity_of_the_last_step() {
        let mut past = PastPositions::of(Pos::ground(0, 0));
        (0..4).for_each(|i| past.push(Pos::ground(60 * i, 0), 10_000));
        assert_eq!(
            past.velocity(Pos::ground(180, 60), 100, 10_000, (Pos::ground(0, 0), 3)),
            (0, 600)
        );
        assert_eq!(velocity(&[0, 60, 120, 60]), (-600, 0));
    }

    #[test]
    fn a_straight_way_is_measured_as_a_whole_and_a_curve_by_its_end() {
        // 35.4 cm a tick, in whole centimetres.
        let at = |tick: i32| Pos::ground(354 * tick / 10, 0);
        let mut past = PastPositions::of(at(0));
        (0..30).for_each(|tick| past.push(at(tick), 10_000));
        let velocity = |begun: (Pos, u64)| past.velocity(at(30), 100, 10_000, begun);
        assert_eq!(velocity((at(0), 30)), (354, 0));
        assert_eq!(velocity((Pos::ground(0, 300), 30)), velocity((at(28), 2)));
    }

    #[test]
    fn a_jump_is_no_walk() {
        assert_eq!(velocity(&[0, 0, 0, 20_000]), (0, 0));
        assert_eq!(velocity(&[0, 60, 120, 20_000, 20_060]), (600, 0));
        let far = [i32::MIN, i32::MAX].map(|x| Pos::ground(x, x));
        let mut past = PastPositions::of(far[0]);
        past.push(far[0], i64::MAX);
        past.push(far[1], i64::MAX);
        assert_eq!(past.velocity(far[0], 1, i64::MAX, (far[0], u64::MAX)), (i32::MIN, i32::MIN));
    }
}
