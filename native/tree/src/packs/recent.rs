//! A cache of the last objects: inflating one again takes ten times as long as
//! a lookup here.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use huai_git::object::Object;
use huai_git::oid::Oid;

/// The largest object that is kept: a larger one would displace too many.
const OBJECT_BYTES: usize = 1 << 20;

/// Objects by id; the oldest is dropped first.
#[derive(Debug)]
pub(crate) struct Recent {
    /// The most bytes of content.
    room: usize,
    objects: BTreeMap<Oid, Arc<Object>>,
    order: VecDeque<Oid>,
    bytes: usize,
}

impl Recent {
    /// Keep at most `room` bytes of content.
    pub(crate) fn new(room: usize) -> Self {
        Self {
            room,
            objects: BTreeMap::new(),
            order: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Return a cached object, if it is here.
    pub(crate) fn get(&self, oid: &Oid) -> Option<Arc<Object>> {
        self.objects.get(oid).cloned()
    }

    /// Add an object, which is not in the cache, dropping the oldest; a large one is not kept.
    pub(crate) fn keep(&mut self, oid: Oid, object: &Arc<Object>) {
        if object.content.len() > OBJECT_BYTES {
            return;
        }
        self.bytes += object.content.len();
        self.objects.insert(oid, Arc::clone(object));
        self.order.push_back(oid);
        while self.bytes > self.room {
            let oldest = self.order.pop_front();
            let Some(gone) = oldest.and_then(|oid| self.objects.remove(&oid)) else {
                break;
            };
            self.bytes -= gone.content.len();
        }
    }

    /// Drop all objects.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.room);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use huai_git::object::{Kind, Object};
    use huai_git::oid::Oid;

    use super::{OBJECT_BYTES, Recent};

    const ROOM: usize = 24 << 20;

    fn blob(size: usize) -> (Oid, Arc<Object>) {
        let content = vec![b'x'; size];
        let kind = Kind::Blob;
        let mut name = [0; 20];
        name[..8].copy_from_slice(&size.to_be_bytes());
        let oid = Oid::parse(&name).unwrap();
        (oid, Arc::new(Object { kind, content }))
    }

    #[test]
    fn the_first_goes_first_and_only_when_there_is_no_room() {
        let mut recent = Recent::new(ROOM);
        let room = ROOM / OBJECT_BYTES;
        let sizes: Vec<usize> = (0..=room).map(|number| OBJECT_BYTES - number).collect();
        for size in &sizes {
            let (oid, object) = blob(*size);
            recent.keep(oid, &object);
        }
        assert_eq!(recent.get(&blob(sizes[0]).0), None);
        assert_eq!(recent.get(&blob(sizes[1]).0), Some(blob(sizes[1]).1));
        assert!(recent.bytes <= ROOM);
        recent.clear();
        assert_eq!(recent.get(&blob(sizes[1]).0), None);
    }

    #[test]
    fn a_large_one_is_not_kept() {
        let mut recent = Recent::new(ROOM);
        let (oid, object) = blob(OBJECT_BYTES + 1);
        recent.keep(oid, &object);
        assert_eq!((recent.get(&oid), recent.bytes), (None, 0));
    }
}
