use super::*;

/// A number as DWARF writes it in few bytes.
fn leb(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = value as u8 & 0x7f;
        value >>= 7;
        if value == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}

/// An abbreviation: its code, tag, whether it has children, and its attributes with their forms.
fn abbreviation(code: u64, tag: gimli::DwTag, children: bool, attributes: &[(gimli::DwAt, gimli::DwForm)]) -> Vec<u8> {
    let mut bytes = [leb(code), leb(tag.0.into()), vec![children.into()]].concat();
    for (attribute, form) in attributes {
        bytes.extend([leb(attribute.0.into()), leb(form.0.into())].concat());
    }
    bytes.extend([0, 0]);
    bytes
}

/// A unit of DWARF 4 with these entries, for the abbreviations at 0.
fn unit(entries: &[u8]) -> Vec<u8> {
    let rest = [&4u16.to_le_bytes()[..], &0u32.to_le_bytes(), &[4], entries].concat();
    [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
}

fn dwarf(sections: &[(&str, Vec<u8>)]) -> Dwarf {
    Dwarf::new(sections.iter().map(|(name, data)| (*name, &data[..])))
}

/// Looks everything up, and says how long that was computed.
fn look(dwarf: &Dwarf) -> (Vec<SourceFrame>, Duration) {
    let began = computed();
    dwarf.source(0x10);
    let frames = dwarf.frames(&[Some(0x10), None], MAX_TIME);
    assert_eq!(frames.len(), 2);
    (frames.into_iter().next().unwrap_or_default(), computed() - began)
}

const PC: [(gimli::DwAt, gimli::DwForm); 2] =
    [(gimli::DW_AT_low_pc, gimli::DW_FORM_addr), (gimli::DW_AT_high_pc, gimli::DW_FORM_data4)];
/// What `PC` has: addresses 0 to 0x1000.
const WHOLE: [u8; 8] = [0, 0, 0, 0, 0, 0x10, 0, 0];

/// A function with `depth` others inlined in it, one in the other.
fn inlined(depth: usize) -> Dwarf {
    let named = [&[(gimli::DW_AT_name, gimli::DW_FORM_string)], &PC[..]].concat();
    let abbreviations = [
        abbreviation(1, gimli::DW_TAG_compile_unit, true, &PC),
        abbreviation(2, gimli::DW_TAG_subprogram, true, &named),
        abbreviation(3, gimli::DW_TAG_inlined_subroutine, true, &named),
        vec![0],
    ];
    let entry = |code: u8, name: &[u8]| [&[code][..], name, &WHOLE].concat();
    let mut entries = [entry(1, b""), entry(2, b"f\0")].concat();
    entries.extend(entry(3, b"g\0").repeat(depth));
    entries.extend(vec![0; depth + 2]);
    dwarf(&[(".debug_abbrev", abbreviations.concat()), (".debug_info", unit(&entries))])
}

#[test]
fn inlined_functions_are_frames() {
    let (frames, _) = look(&inlined(2));
    let names: Vec<_> = frames.iter().map(|frame| frame.name.as_deref()).collect();
    assert_eq!(names, [Some("g"), Some("g"), Some("f")]);
}

#[test]
fn functions_inlined_without_end_take_no_stack() {
    assert_eq!(look(&inlined(MAX_INLINED)).0.len(), MAX_INLINED + 1);
    assert_eq!(look(&inlined(MAX_INLINED + 1)).0, []);
    assert_eq!(look(&inlined(1_000_000)).0, []);
}

#[test]
fn a_name_that_refers_to_itself_is_none() {
    let attributes = [&[(gimli::DW_AT_abstract_origin, gimli::DW_FORM_ref4)], &PC[..]].concat();
    let abbreviations = [
        abbreviation(1, gimli::DW_TAG_compile_unit, true, &PC),
        abbreviation(2, gimli::DW_TAG_subprogram, false, &attributes),
        vec![0],
    ];
    // The function's entry follows the unit's header, 11 bytes, and the unit's entry.
    let own = 11 + 1 + WHOLE.len() as u32;
    let entries = [&[1][..], &WHOLE, &[2], &own.to_le_bytes(), &WHOLE, &[0]].concat();
    let (frames, _) = look(&dwarf(&[(".debug_abbrev", abbreviations.concat()), (".debug_info", unit(&entries))]));
    assert_eq!(frames, [SourceFrame::default()]);
}

#[test]
fn a_list_of_ranges_that_all_units_share_is_not_read_for_each() {
    let ranges = [(gimli::DW_AT_ranges, gimli::DW_FORM_sec_offset), (gimli::DW_AT_low_pc, gimli::DW_FORM_addr)];
    let abbreviations = [abbreviation(1, gimli::DW_TAG_compile_unit, false, &ranges), vec![0]].concat();
    let one = unit(&[1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let list = [8u32.to_le_bytes(), 0x20u32.to_le_bytes()].concat().repeat(200_000);
    let sections = [(".debug_abbrev", abbreviations), (".debug_info", one.repeat(20_000)), (".debug_ranges", list)];
    let dwarf = dwarf(&sections);
    let (frames, took) = look(&dwarf);
    assert!(frames.is_empty() && took < 2 * MAX_TIME, "{took:?}");
    // It is not tried again.
    assert!(dwarf.is_given_up.load(Ordering::Relaxed) && look(&dwarf).1 < Duration::from_millis(10));
}

#[test]
fn attributes_without_bytes_take_no_longer_than_they_may() {
    let flags = vec![(gimli::DW_AT_external, gimli::DW_FORM_flag_present); 100_000];
    let abbreviations = [
        abbreviation(1, gimli::DW_TAG_compile_unit, true, &PC),
        abbreviation(2, gimli::DW_TAG_subprogram, false, &flags),
        vec![0],
    ];
    let entries = [&[1][..], &WHOLE, &vec![2; 1_000_000]].concat();
    let (_, took) = look(&dwarf(&[(".debug_abbrev", abbreviations.concat()), (".debug_info", unit(&entries))]));
    assert!(took < 3 * MAX_TIME, "{took:?}");
}

#[test]
fn more_units_than_there_may_be_are_not_read() {
    let abbreviations = [abbreviation(1, gimli::DW_TAG_compile_unit, false, &PC), vec![0]].concat();
    let one = unit(&[&[1][..], &WHOLE].concat());
    let of = |count| dwarf(&[(".debug_abbrev", abbreviations.clone()), (".debug_info", one.repeat(count))]);
    assert!(of(2).look(MAX_TIME, |_, _| ()).is_some());
    assert!(of(MAX_UNITS + 1).look(MAX_TIME, |_, _| ()).is_none());
}

#[test]
fn sections_that_are_cut_short_or_changed_give_nothing_worse_than_nothing() {
    let whole = inlined(5);
    let [(_, abbreviations), (_, info)] = &whole.sections[..] else { panic!("two sections") };
    for end in 0..info.len() {
        look(&dwarf(&[(".debug_abbrev", abbreviations.to_vec()), (".debug_info", info[..end].to_vec())]));
        for value in [0, 1, 3, 0x7f, 0x80, 0xff] {
            let mut changed = info.to_vec();
            changed[end] = value;
            look(&dwarf(&[(".debug_abbrev", abbreviations.to_vec()), (".debug_info", changed)]));
        }
    }
    for end in 0..abbreviations.len() {
        look(&dwarf(&[(".debug_abbrev", abbreviations[..end].to_vec()), (".debug_info", info.to_vec())]));
    }
}
