#![allow(clippy::unwrap_used)]

use super::*;
use crate::CodeOptions;
use crate::cpu::compile::{Options, compile};

const PTX: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .global .align 8 .u64 word[2] = {7, double};
.visible .func (.reg .b32 %r1) double (.reg .b32 %r0)
{
    add.u32 %r1, %r0, %r0;
    ret;
}
.visible .entry k (.param .u64 p0, .param .u32 p1)
{
    .reg .b32 %r<4>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [p0];
    ld.param.u32 %r0, [p1];
    call (%r1), double, (%r0);
    mov.u64 %d1, word;
    ld.global.u64 %d2, [%d1];
    cvt.u32.u64 %r2, %d2;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%d0], %r1;
    exit;
}
";

#[test]
fn an_object_is_the_same_after_writing_and_reading() {
    let object = compile(PTX, Options::default(), CodeOptions::default()).unwrap();
    let bytes = object.to_bytes().unwrap();
    let again = Object::from_bytes(&bytes).unwrap();
    assert_eq!(again, object);
    assert!(object.code_fixups.iter().any(|f| matches!(f.target, Target::Data(0))), "{:?}", object.code_fixups);
    assert!(object.code_fixups.iter().any(|f| matches!(f.target, Target::Host(_))), "{:?}", object.code_fixups);
    assert!(matches!(object.data_fixups[..], [Fixup { at: 8, target: Target::Code(_), addend: 0 }]));
    let program = again.place(Options::default()).unwrap();
    assert_eq!(program.kernels["k"].parameters, [Type::U64, Type::U32]);
}

#[test]
fn an_object_in_pages_stays_where_it_is_if_it_begins_with_one() {
    let bytes = compile(PTX, Options::default(), CodeOptions::default()).unwrap().to_bytes().unwrap();
    for (before, stays) in [(0, true), (PAGE, true), (100, false)] {
        let mut pages = Mapping::new((before + bytes.len()) as u64).unwrap();
        let start = pages.address() as usize;
        pages.bytes_mut()[before..before + bytes.len()].copy_from_slice(&bytes);
        let end = start + before + bytes.len();
        let program = Object::place_in(pages, before..before + bytes.len(), Options::default()).unwrap();
        assert_eq!((start..end).contains(&program.kernels["k"].address), stays, "{before}");
    }
    assert!(Object::place_in(Mapping::new(100).unwrap(), 0..10_000, Options::default()).is_err());
}

#[test]
fn no_object_that_is_cut_or_changed_is_placed_outside_its_memory() {
    let bytes = compile(PTX, Options::default(), CodeOptions::default()).unwrap().to_bytes().unwrap();
    for length in 0..bytes.len() {
        assert!(Object::from_bytes(&bytes[..length]).is_err(), "{length} bytes");
    }
    // The code itself may change, and nobody runs it; everything else is refused or stays inside.
    for at in 0..bytes.len() {
        for bits in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= bits;
            if let Ok(object) = Object::from_bytes(&changed)
                && object.data_bytes < 1 << 20
            {
                let _ = object.place(Options::default());
            }
        }
    }
}

#[test]
fn two_that_are_placed_have_data_of_their_own() {
    let object = compile(PTX, Options::default(), CodeOptions::default()).unwrap();
    let (one, two) = (object.place(Options::default()).unwrap(), object.place(Options::default()).unwrap());
    assert_ne!(one.kernels["k"].address, two.kernels["k"].address);
}
