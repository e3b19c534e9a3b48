use proptest::prelude::*;

use super::super::spec::StepResult;
use super::*;

fn stream(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for frame in frames {
        match frame {
            Frame::Output { step, stream, bytes: output } => encode_output(*step, *stream, output, &mut bytes),
            Frame::StepEnd(report) => encode_step_end(report, &mut bytes).unwrap(),
            Frame::End(end) => encode_end(end, &mut bytes).unwrap(),
        }
    }
    bytes
}

fn decode(bytes: &[u8], piece: usize) -> Result<Vec<Frame>, FrameError> {
    let mut decoder = Decoder::new();
    let mut frames = Vec::new();
    for piece in bytes.chunks(piece) {
        decoder.feed(piece);
        while let Some(frame) = decoder.frame()? {
            frames.push(frame);
        }
    }
    Ok(frames)
}

fn example() -> Vec<Frame> {
    vec![
        Frame::Output { step: 0, stream: Stream::Stdout, bytes: vec![0, 255, b'\n'] },
        Frame::Output { step: 7, stream: Stream::Content, bytes: vec![1; MAX_OUTPUT] },
        Frame::StepEnd(StepReport { index: 0, result: StepResult::Absent, wall_ms: 3 }),
        Frame::End(ProgramEnd::Stopped { step: 0 }),
    ]
}

#[test]
fn frames_come_back_in_pieces_of_any_size() {
    let bytes = stream(&example());
    for piece in [1, 2, 3, 7, 4096, bytes.len()] {
        assert_eq!(decode(&bytes, piece).unwrap(), example());
    }
}

#[test]
fn bad_streams_are_told_apart() {
    assert!(matches!(decode(b"Picked up JAVA_TOOL_OPTIONS", 64), Err(FrameError::Magic)));
    let with = |tail: &[u8]| [&MAGIC[..], tail].concat();
    assert!(matches!(decode(&with(&[9, 0, 0, 0, 0]), 64), Err(FrameError::Kind(9))));
    assert!(matches!(decode(&with(&[1, 255, 255, 255, 255]), 64), Err(FrameError::Length(_))));
    assert!(matches!(decode(&with(&[1, 1, 0, 0, 0, 0]), 64), Err(FrameError::Length(1))));
    assert!(matches!(decode(&with(&[1, 5, 0, 0, 0, 0, 0, 0, 0, 9]), 64), Err(FrameError::Stream(9))));
    assert!(matches!(decode(&with(&[2, 2, 0, 0, 0, b'{', b'}']), 64), Err(FrameError::Report(_))));
    let mut twice = stream(&example());
    twice.push(3);
    assert!(matches!(decode(&twice, 4096), Err(FrameError::AfterEnd)));
}

proptest! {
    #[test]
    fn any_bytes_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..2000), piece in 1usize..64) {
        let _ = decode(&bytes, piece);
        let _ = decode(&[&MAGIC[..], &bytes].concat(), piece);
    }
}
