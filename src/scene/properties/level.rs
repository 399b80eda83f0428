//! The levels of an entity's properties.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize, Serializer};

use super::id::{APPEARANCE, MAX_ENTITY_BYTES, MAX_PROPERTIES, PropertyId, PropertyRefusal};
use super::value::{Value, ValueError};
use crate::scene::{Tick, TickStamp};

/// The value of a property, and how often it was set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Level {
    /// The property.
    pub id: PropertyId,
    /// Grows by one each time the property is set; 0: the value was lost with a region.
    pub version: u32,
    /// The value.
    pub value: Value,
    /// Since when the region that keeps the level has it: its viewers are told after that.
    pub changed: TickStamp,
}

/// Why levels of another process are not those of an entity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedProperties {
    /// A number is too high, or not above the one before it.
    #[error("property {0} is out of order or above the highest number")]
    OutOfOrder(PropertyId),
}

/// The levels of one entity, in the order of their ids: an empty pointer where nothing was ever set.
/// A clone shares them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Vec<Level>")]
pub struct Properties(Option<Arc<Vec<Level>>>);

impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.levels().serialize(serializer)
    }
}

impl TryFrom<Vec<Level>> for Properties {
    type Error = MalformedProperties;

    fn try_from(levels: Vec<Level>) -> Result<Properties, MalformedProperties> {
        let mut least = 0;
        for level in &levels {
            if level.id.0 < least || usize::from(level.id.0) >= MAX_PROPERTIES {
                return Err(MalformedProperties::OutOfOrder(level.id));
            }
            least = level.id.0 + 1;
        }
        Ok(Properties::of(levels))
    }
}

impl Properties {
    fn of(levels: Vec<Level>) -> Properties {
        Properties((!levels.is_empty()).then(|| Arc::new(levels)))
    }

    /// The properties of a new entity that has opaque bytes as its appearance; none if there are no
    /// bytes.
    ///
    /// # Errors
    /// The bytes are too long.
    pub fn with_appearance(content: &[u8]) -> Result<Properties, ValueError> {
        let mut properties = Properties::default();
        if !content.is_empty() {
            properties.begin_with(APPEARANCE, Value::binary(content)?);
        }
        Ok(properties)
    }

    /// Gives a property of a new entity its first value.
    pub fn begin_with(&mut self, id: PropertyId, value: Value) {
        self.put(Level { id, version: 1, value, changed: TickStamp::of(Tick(0)) });
    }

    /// All levels, in the order of their ids.
    #[inline]
    pub fn levels(&self) -> &[Level] {
        self.0.as_ref().map_or(&[], |levels| levels)
    }

    /// Whether nothing was ever set.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The level of a property.
    pub fn get(&self, id: PropertyId) -> Option<&Level> {
        let at = self.levels().binary_search_by_key(&id, |level| level.id).ok()?;
        self.levels().get(at)
    }

    /// A property's value; its type's default if it was never set, or is of another type.
    pub fn read<T: DeserializeOwned + Default>(&self, id: PropertyId) -> T {
        self.get(id).and_then(|level| level.value.read().ok()).unwrap_or_default()
    }

    /// The opaque bytes of the appearance; `None` when there is none, or it is of another type.
    pub fn appearance(&self) -> Option<&[u8]> {
        self.get(APPEARANCE)?.value.as_binary()
    }

    /// Bytes of all values.
    pub fn value_bytes(&self) -> usize {
        self.levels().iter().map(|level| level.value.bytes().len()).sum()
    }

    /// Takes a level, whatever was known of its property before.
    pub fn put(&mut self, level: Level) {
        let levels = Arc::make_mut(self.0.get_or_insert_default());
        match levels.binary_search_by_key(&level.id, |known| known.id) {
            Ok(at) => levels[at] = level,
            Err(at) => levels.insert(at, level),
        }
    }

    /// Sets a property; false if it has this value already.
    ///
    /// # Errors
    /// [`PropertyRefusal::Full`].
    pub fn set(
        &mut self,
        id: PropertyId,
        value: Value,
        now: TickStamp,
    ) -> Result<bool, PropertyRefusal> {
        let known = self.get(id);
        if known.is_some_and(|known| known.value == value) {
            return Ok(false);
        }
        let before = known.map_or(0, |known| known.value.bytes().len());
        if self.value_bytes() - before + value.bytes().len() > MAX_ENTITY_BYTES {
            return Err(PropertyRefusal::Full);
        }
        let version = known.map_or(0, |known| known.version).saturating_add(1);
        self.put(Level { id, version, value, changed: now });
        Ok(true)
    }

    /// Takes every level of `other` that is newer; these count as changed `now`. False if none is.
    pub fn merge(&mut self, other: &Properties, now: TickStamp) -> bool {
        if self.0.is_none() {
            *self = other.clone();
            self.stamp(now);
            return !other.is_empty();
        }
        let mut news = false;
        for level in other.levels() {
            if self.get(level.id).is_none_or(|known| known.version < level.version) {
                self.put(Level { changed: now, ..level.clone() });
                news = true;
            }
        }
        news
    }

    /// Becomes `other`, which is of a later life of the entity, whatever the versions. A property that
    /// has no level any more gets nil, so that viewers are told. False if nothing differs.
    pub fn replace(&mut self, other: &Properties, now: TickStamp) -> bool {
        let mut news = false;
        let mut next = other.clone();
        for level in self.levels().iter().filter(|level| other.get(level.id).is_none()) {
            next.put(Level { version: 0, value: Value::NIL, ..level.clone() });
        }
        if let Some(levels) = &mut next.0 {
            for level in Arc::make_mut(levels) {
                let known = self.get(level.id);
                let same = known.filter(|known| known.value == level.value);
                level.changed = same.map_or(now, |same| same.changed);
                news |= same.is_none();
            }
        }
        *self = next;
        news
    }

    /// All levels count as changed `now`.
    pub fn stamp(&mut self, now: TickStamp) {
        if let Some(levels) =
            self.0.as_mut().filter(|levels| levels.iter().any(|l| l.changed != now))
        {
            Arc::make_mut(levels).iter_mut().for_each(|level| level.changed = now);
        }
    }

    /// Those levels that `wanted` selects count as changed `now`; false if there are none.
    pub fn stamp_if(&mut self, now: TickStamp, wanted: impl Fn(PropertyId) -> bool) -> bool {
        let any = self.levels().iter().any(|level| wanted(level.id));
        if let Some(levels) = self.0.as_mut().filter(|_| any) {
            let levels = Arc::make_mut(levels).iter_mut();
            levels.filter(|level| wanted(level.id)).for_each(|level| level.changed = now);
        }
        any
    }

    /// Renews stamps of long ago: see [`TickStamp::renewed`].
    pub fn renew_stamps(&mut self, now: Tick) {
        if let Some(levels) = &mut self.0 {
            let levels = Arc::make_mut(levels).iter_mut();
            levels.for_each(|level| level.changed = level.changed.renewed(now));
        }
    }

    /// The levels that `wanted` selects; shares the memory if these are all.
    pub fn select(&self, wanted: impl Fn(&Level) -> bool) -> Properties {
        match self.levels().iter().all(&wanted) {
            true => self.clone(),
            false => Properties::of(
                self.levels().iter().filter(|level| wanted(level)).cloned().collect(),
            ),
        }
    }

    /// The stamp of the level that has changed last.
    pub fn last_change(&self) -> Option<TickStamp> {
        let stamps = self.levels().iter().map(|level| level.changed);
        stamps.reduce(|last, stamp| if stamp.is_after(last) { stamp } else { last })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(tick: u64) -> TickStamp {
        TickStamp::of(Tick(tick))
    }

    fn int(n: u8) -> Value {
        Value::new(vec![n & 0x7f]).unwrap()
    }

    fn seen(properties: &Properties) -> Vec<(u8, u32, Value)> {
        properties.levels().iter().map(|l| (l.id.0, l.version, l.value.clone())).collect()
    }

    #[test]
    fn an_entity_without_properties_has_an_empty_pointer() {
        assert_eq!(size_of::<Properties>(), size_of::<usize>());
        assert!(Properties::default().is_empty());
        assert!(Properties::with_appearance(&[]).unwrap().is_empty());
    }

    #[test]
    fn each_set_makes_a_version_and_an_equal_value_none() {
        let mut p = Properties::default();
        assert_eq!(p.set(PropertyId(3), int(1), at(5)), Ok(true));
        assert_eq!(p.set(PropertyId(3), int(1), at(6)), Ok(false));
        assert_eq!(p.set(PropertyId(3), int(2), at(7)), Ok(true));
        assert_eq!(p.set(PropertyId(1), int(9), at(6)), Ok(true));
        assert_eq!(seen(&p), [(1, 1, int(9)), (3, 2, int(2))]);
        assert_eq!(p.last_change(), Some(at(7)));
    }

    #[test]
    fn all_values_together_have_a_limit() {
        let mut p = Properties::default();
        let long = || Value::binary(&[7; 1_021]).unwrap();
        for id in 0..4 {
            assert_eq!(p.set(PropertyId(id), long(), at(1)), Ok(true));
        }
        assert_eq!(p.set(PropertyId(4), int(1), at(1)), Err(PropertyRefusal::Full));
        assert_eq!(p.set(PropertyId(0), int(1), at(1)), Ok(true));
        assert_eq!(p.set(PropertyId(4), int(1), at(1)), Ok(true));
    }

    #[test]
    fn a_later_life_replaces_all_and_what_is_lost_becomes_nil() {
        let mut p = Properties::default();
        p.set(PropertyId(1), int(1), at(1)).unwrap();
        p.set(PropertyId(1), int(2), at(2)).unwrap();
        p.set(PropertyId(2), int(3), at(2)).unwrap();
        p.set(PropertyId(4), int(4), at(2)).unwrap();
        let mut next = Properties::default();
        next.begin_with(PropertyId(1), int(1));
        next.begin_with(PropertyId(4), int(4));
        assert!(p.replace(&next, at(9)));
        assert_eq!(seen(&p), [(1, 1, int(1)), (2, 0, Value::NIL), (4, 1, int(4))]);
        let stamps: Vec<_> = p.levels().iter().map(|level| level.changed).collect();
        assert_eq!(stamps, [at(9), at(9), at(2)]);
        let again = p.clone();
        assert!(!p.replace(&again, at(10)));
    }

    #[test]
    fn levels_of_another_process_are_checked() {
        let level = |id| Level { id: PropertyId(id), version: 1, value: int(1), changed: at(0) };
        assert!(Properties::try_from(vec![level(0), level(63)]).is_ok());
        for bad in [vec![level(64)], vec![level(2), level(1)], vec![level(2), level(2)]] {
            assert!(Properties::try_from(bad).is_err());
        }
    }

    proptest! {
        /// Whatever is lost, repeated or late: both ends have the highest version of each.
        #[test]
        fn merging_is_order_free_and_repeatable(
            sets in prop::collection::vec((0u8..4, 0u8..100), 0..30),
            order in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let mut owner = Properties::default();
            let mut history = vec![owner.clone()];
            for (id, n) in sets {
                owner.set(PropertyId(id), int(n), at(1)).unwrap();
                history.push(owner.clone());
            }
            let mut copy = Properties::default();
            for index in order {
                copy.merge(index.get(&history), at(2));
            }
            copy.merge(&owner, at(3));
            prop_assert_eq!(seen(&copy), seen(&owner));
            prop_assert!(!copy.merge(&owner, at(4)));
        }
    }
}
