//! Maps that stop growing: whoever writes a record chooses its keys, and a page
//! has an end.

use std::collections::BTreeMap;

/// A map with a bound; what does not fit is counted.
#[derive(Debug)]
pub(super) struct Bounded<K, V> {
    map: BTreeMap<K, V>,
    max: usize,
    /// How often something did not fit.
    pub(super) left_out: u64,
}

impl<K: Ord, V: Default> Bounded<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self {
            map: BTreeMap::new(),
            max,
            left_out: 0,
        }
    }

    /// The value of a key, made if it is new and fits.
    pub(super) fn of(&mut self, key: K) -> Option<&mut V> {
        if self.map.len() >= self.max && !self.map.contains_key(&key) {
            self.left_out = self.left_out.saturating_add(1);
            return None;
        }
        Some(self.map.entry(key).or_default())
    }

    pub(super) fn take(&mut self, key: &K) -> Option<V> {
        self.map.remove(key)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// The entries by what `weight` says, the greatest first; of equals the
    /// order of keys holds.
    pub(super) fn by<W: Ord>(&self, weight: impl Fn(&V) -> W) -> Vec<(&K, &V)> {
        let mut entries: Vec<(&K, &V)> = self.map.iter().collect();
        entries.sort_by_key(|(_, value)| std::cmp::Reverse(weight(value)));
        entries
    }
}

impl<K: Ord, V: Default> IntoIterator for Bounded<K, V> {
    type Item = (K, V);
    type IntoIter = std::collections::btree_map::IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.map.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_what_is_there_stays() {
        let mut map: Bounded<u8, u64> = Bounded::new(2);
        for key in [1, 2, 3, 1, 4] {
            if let Some(value) = map.of(key) {
                *value += 1;
            }
        }
        assert_eq!((map.len(), map.left_out), (2, 2));
        assert_eq!(map.by(|value| *value), [(&1, &2), (&2, &1)]);
    }
}
