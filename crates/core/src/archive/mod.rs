//! The archive: how old content is named, packed and accounted for outside the table.

mod names;
mod reference;
mod segment;
mod state;

pub use names::{Nonce, folder, json_leaf, leaf_nonce, segment_leaf};
pub use reference::{BlockRange, ContentRef, RefError};
pub use segment::{
    Block, Entry, Packed, SEGMENT_BEGINNING_BYTES, Segment, SegmentError, pack, read_block, read_header,
};
pub use state::{ArchiveState, Move};
