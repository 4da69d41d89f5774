//! N1 and N2, for adapters that can be scanned.

use std::collections::BTreeMap;

use saltern_core::control::ControlRecord;
use saltern_core::key::{Key, Place};
use saltern_core::layout::Salt;
use saltern_core::record::Record;
use saltern_core::seq::SeqNo;

use super::fixtures::{claim, claim_key, conversation, write};
use crate::port::Store;
use crate::scan::Scan;

/// Every row of every kind is found once, whatever the size of pages.
pub async fn finds_every_row_once(store: &dyn Store, scan: &dyn Scan) {
    let mut expected = BTreeMap::new();
    for name in ["scan#1", "scan", "scan!"] {
        let control = Record::Control(ControlRecord::create(1, 7));
        expected.insert(Key::control(&conversation(name)), control);
        for seq in 1..=20_u16 {
            let salt = if seq <= 10 { Salt::Unsalted } else { Salt::Of(seq % 3) };
            expected.insert(Key::row(&conversation(name), salt, SeqNo::clamped(seq.into())), Record::Void);
            expected.insert(claim_key(name, &format!("m#{seq}")), claim(seq.into()));
        }
    }
    for (key, record) in &expected {
        write(store, key.clone(), record.clone()).await;
    }
    for limit in [1, 7, 1_000] {
        let mut found = everything(scan, limit).await;
        found.retain(|key, _| expected.contains_key(key));
        assert_eq!(found, expected, "in pages of {limit}");
    }
}

async fn everything(scan: &dyn Scan, limit: usize) -> BTreeMap<Key, Record> {
    let (mut found, mut behind) = (BTreeMap::new(), None);
    loop {
        let page = scan.scan(behind.as_ref(), limit).await.expect("a scan is answered");
        assert!(page.rows.len() <= limit);
        for (key, record) in page.rows {
            assert_eq!(key.place().as_ref().map(Place::key), Some(key.clone()));
            let before = found.insert(key.clone(), record.expect("a row that was written"));
            assert_eq!(before, None, "{key:?} came twice");
        }
        behind = page.resume;
        if behind.is_none() {
            return found;
        }
    }
}
