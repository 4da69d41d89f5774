use proptest::prelude::*;

use super::*;

fn conversation() -> ConversationId {
    ConversationId::new("té/a").unwrap()
}

fn seq(n: u64) -> SeqNo {
    SeqNo::clamped(n)
}

/// Every message, by way of its own block alone.
fn unpack(packed: &Packed, messages: &[(SeqNo, &str)]) -> Vec<Result<String, SegmentError>> {
    let block = |at: &BlockRange| {
        let range = usize::try_from(at.offset).unwrap()..usize::try_from(at.end()).unwrap();
        read_block(packed.bytes.get(range).ok_or(SegmentError::Truncated)?)
    };
    let one = |(at, (seq, _)): (&BlockRange, &(SeqNo, &str))| {
        let entry = block(at)?.into_iter().find(|entry| entry.seq == *seq).ok_or(SegmentError::Damaged)?;
        entry.text
    };
    packed.blocks.iter().zip(messages).map(one).collect()
}

/// Golden bytes: these objects are in people's buckets. The frame is written by hand, as one that stores what it is given: how
/// well others compress is theirs to change.
#[test]
fn segments_are_pinned() {
    let packed = pack(&conversation(), &[(seq(300), "hey"), (seq(302), "")]);
    let header = "53414c5453454701 0c000000 05 74c3a92f61 01 ac02 02 02 ".replace(' ', "");
    let hex: String = packed.bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(hex.starts_with(&header), "{hex}");
    let plain = "02 ac02 SUM1 03 686579 ae02 SUM2 00";
    let sum = |n: u64, content: &[u8]| -> String {
        message_sum(seq(n), content).iter().map(|byte| format!("{byte:02x}")).collect()
    };
    assert_eq!((sum(300, b"hey").as_str(), sum(302, b"").as_str()), ("ff70d8faf7d16d48", "8947bc952889a356"));
    let plain = plain.replace("SUM1", &sum(300, b"hey")).replace("SUM2", &sum(302, b"")).replace(' ', "");
    let plain: Vec<u8> =
        (0..plain.len() / 2).map(|i| u8::from_str_radix(&plain[2 * i..2 * i + 2], 16).unwrap()).collect();
    let (magic, single_segment, raw_last_block) = ([0x28, 0xB5, 0x2F, 0xFD], 0x20, 1);
    let size = u8::try_from(plain.len()).unwrap();
    let mut frame = magic.to_vec();
    frame.extend([single_segment, size, raw_last_block | (size << 3), 0, 0]);
    frame.extend(plain);
    let expected = [(300, "hey"), (302, "")].map(|(n, text)| Entry { seq: seq(n), text: Ok(text.to_owned()) });
    assert_eq!(read_block(&frame), Ok(expected.to_vec()));
}

#[test]
fn a_header_tells_whose_and_where() {
    let long = "x".repeat(CONTENT_BYTES_MAX);
    let messages: Vec<_> = (1..=200).map(|n| (seq(n), if n == 70 { long.as_str() } else { "hey" })).collect();
    let packed = pack(&conversation(), &messages);
    let segment = read_header(&packed.bytes).unwrap();
    assert_eq!(segment.conversation, conversation());
    let blocks: Vec<_> =
        segment.blocks.iter().map(|block| (block.range.from.get(), block.range.to.get(), block.messages)).collect();
    assert_eq!(blocks, [(1, 64, 64), (65, 70, 6), (71, 134, 64), (135, 198, 64), (199, 200, 2)]);
    assert_eq!(segment.blocks.last().unwrap().at.end(), packed.bytes.len() as u64);
    assert_eq!(packed.blocks[69], segment.blocks[1].at);
    assert_eq!(segment.range(), SeqRange::new(seq(1), seq(200)));
    let start = usize::try_from(segment.blocks[0].at.offset).unwrap();
    assert_eq!(read_header(&packed.bytes[..start]), Ok(segment));
    for cut in 0..start {
        assert_eq!(read_header(&packed.bytes[..cut]), Err(SegmentError::Truncated), "cut at {cut}");
    }
}

#[test]
fn other_files_are_told() {
    let mut bytes = pack(&conversation(), &[(seq(1), "hey")]).bytes;
    assert_eq!(read_header(b"{\"conversation_id\":\"a\"}"), Err(SegmentError::NotASegment));
    bytes[7] = 2;
    assert_eq!(read_header(&bytes), Err(SegmentError::Version(2)));
}

proptest! {
    #[test]
    fn contents_come_back_to_the_byte(texts in prop::collection::vec(any::<String>(), 1..200)) {
        let messages: Vec<_> = texts.iter().zip(7..).map(|(text, n)| (seq(n), text.as_str())).collect();
        let packed = pack(&conversation(), &messages);
        prop_assert_eq!(unpack(&packed, &messages), texts.into_iter().map(Ok).collect::<Vec<_>>());
    }

    #[test]
    fn no_damaged_byte_changes_a_text(at in any::<prop::sample::Index>(), to in any::<u8>()) {
        let texts: Vec<_> = (0..150).map(|n| format!("message {n} {}", "é".repeat(n))).collect();
        let messages: Vec<_> = texts.iter().zip(1..).map(|(text, n)| (seq(n), text.as_str())).collect();
        let mut packed = pack(&conversation(), &messages);
        let at = at.index(packed.bytes.len());
        packed.bytes[at] = to;
        for (found, text) in unpack(&packed, &messages).into_iter().zip(&texts) {
            if let Ok(found) = found {
                prop_assert_eq!(&found, text);
            }
        }
        let _ = read_header(&packed.bytes);
    }

    #[test]
    fn any_bytes_are_a_block_or_not(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = (read_block(&bytes), read_header(&bytes));
        let _ = read_block(&zstd::bulk::compress(&bytes, 1).unwrap());
        let _ = read_header(&[MAGIC.as_slice(), &bytes].concat());
    }
}
