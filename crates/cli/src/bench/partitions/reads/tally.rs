//! Store calls per page, summarised.

use saltern_store::counted::Counts;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(in crate::bench::partitions) struct Figure {
    pub(in crate::bench::partitions) mean: f64,
    pub(in crate::bench::partitions) max: u64,
}

/// What pages asked of their store, each.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub(in crate::bench::partitions) struct Asked {
    pub(in crate::bench::partitions) pages: u64,
    pub(in crate::bench::partitions) partitions: Figure,
    /// By exact key: control records.
    pub(in crate::bench::partitions) keys: Figure,
    /// That came back, from partitions and by key.
    pub(in crate::bench::partitions) rows: Figure,
}

impl Asked {
    pub(super) fn of(pages: &[Counts]) -> Self {
        let figure = |of: fn(&Counts) -> u64| {
            let (sum, max) = pages.iter().map(of).fold((0, 0), |(sum, max), value| (sum + value, value.max(max)));
            Figure { mean: sum as f64 / pages.len().max(1) as f64, max }
        };
        Self {
            pages: pages.len() as u64,
            partitions: figure(|page| page.queries),
            keys: figure(|page| page.gets),
            rows: figure(|page| page.rows_read),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_counts_and_the_worst_is_kept() {
        let page = |queries, rows_read| Counts { queries, rows_read, ..Counts::default() };
        let asked = Asked::of(&[page(1, 20), page(2, 20), page(1, 23)]);
        assert_eq!((asked.pages, asked.partitions.max, asked.rows.max), (3, 2, 23));
        assert_eq!((asked.partitions.mean, asked.rows.mean), (4.0 / 3.0, 21.0));
        assert_eq!(Asked::of(&[]), Asked::default());
    }
}
