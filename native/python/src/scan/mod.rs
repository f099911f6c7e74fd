//! A tree on its way into a commit: read, watched, and laid out as git objects.

pub(crate) mod calls;
pub(crate) mod change_list;
pub(crate) mod tree_watch;
