//! Texts of messages from the device: they lie in the kernel's own data.

use wasmparser::{DataKind, Operator, Parser, Payload};

/// What a module's data has at an address.
pub(crate) fn data_of(wasm: &[u8], at: u32, length: u32) -> Option<String> {
    for payload in Parser::new(0).parse_all(wasm) {
        let Ok(Payload::DataSection(segments)) = payload else { continue };
        for segment in segments.into_iter().flatten() {
            let DataKind::Active { offset_expr, .. } = segment.kind else { continue };
            let Ok(Operator::I32Const { value }) = offset_expr.get_operators_reader().read() else { continue };
            let Some(from) = at.checked_sub(value as u32) else { continue };
            if let Some(bytes) = segment.data.get(from as usize..(from as usize).saturating_add(length as usize)) {
                return Some(String::from_utf8_lossy(bytes).into_owned());
            }
        }
    }
    None
}
