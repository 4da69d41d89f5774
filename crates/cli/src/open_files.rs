//! File descriptors: as many as the system allows, divided between connections and the engine's files.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::warn;

/// Descriptors that connections leave free. The engine keeps up to 256 tables open, and needs more for the log, for
/// compaction, and for the archive.
const RESERVED: u64 = 512;
/// What is asked for where the system sets no limit.
const ENOUGH: u64 = 1 << 20;

/// Raises the limit of open files as far as is allowed. Answers with the limit that holds now.
pub(crate) fn raise_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let allowed = limit.maximum.unwrap_or(ENOUGH);
    if limit.current.is_some_and(|current| current < allowed) {
        let raised = Rlimit { current: Some(allowed), maximum: limit.maximum };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            warn!(%error, "cannot raise the limit of open files");
        }
    }
    let open_files = getrlimit(Resource::Nofile).current.unwrap_or(ENOUGH);
    if open_files < 2 * RESERVED {
        warn!(open_files, "the limit of open files is low: at least {} are recommended (ulimit -n)", 2 * RESERVED);
    }
    open_files
}

/// How many of the open files may be connections.
pub(crate) fn connections_max(open_files: u64) -> usize {
    let connections = open_files.saturating_sub(RESERVED).max(open_files / 2);
    usize::try_from(connections).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_the_engine() {
        for (open_files, connections) in [(256, 128), (1_024, 512), (4_096, 3_584), (1 << 20, (1 << 20) - 512)] {
            assert_eq!(connections_max(open_files), connections);
        }
    }
}
