//! Layout against taffy: random trees, every rectangle.

mod support;

use fastrand::Rng;
use gpu_run_desktop_kernel::event::{kinds, properties as p, style as s};
use gpu_run_desktop_kernel::flex::AUTO;
use gpu_run_desktop_kernel::memory::*;
use support::Desk;
use taffy::prelude::*;

/// A widget's style in numbers, as the desktop has it.
#[derive(Clone, Debug)]
struct Node {
    lengths: Vec<f32>,
    style: u32,
    children: Vec<Node>,
}

fn length(random: &mut Rng, share: f32, most: f32) -> f32 {
    if random.f32() < share { (random.f32() * most * 4.0).round() / 4.0 } else { AUTO }
}

fn node(random: &mut Rng, depth: u32) -> Node {
    let mut lengths = vec![0.0; p::LAST_STYLE as usize + 1];
    let mut put = |property: u32, value: f32| lengths[property as usize] = value;
    put(p::WIDTH, length(random, 0.3, 160.0));
    put(p::HEIGHT, length(random, 0.3, 120.0));
    put(p::MIN_WIDTH, length(random, 0.12, 90.0));
    put(p::MIN_HEIGHT, length(random, 0.12, 90.0));
    put(p::MAX_WIDTH, length(random, 0.12, 180.0));
    put(p::MAX_HEIGHT, length(random, 0.12, 180.0));
    put(p::BASIS, length(random, 0.15, 100.0));
    put(p::GROW, [0.0, 0.0, 1.0, 2.5, 0.3][random.usize(..5)]);
    put(p::SHRINK, [1.0, 1.0, 0.0, 2.0, 0.4][random.usize(..5)]);
    put(p::ASPECT, if random.f32() < 0.1 { 0.5 + random.f32() * 2.0 } else { AUTO });
    for property in [p::GAP_X, p::GAP_Y] {
        put(property, if random.bool() { random.u32(..16) as f32 } else { 0.0 });
    }
    for property in p::PAD_LEFT..=p::PAD_BOTTOM {
        put(property, if random.f32() < 0.3 { random.u32(..12) as f32 } else { 0.0 });
    }
    for property in p::MARGIN_LEFT..=p::MARGIN_BOTTOM {
        put(property, if random.f32() < 0.3 { random.i32(-4..12) as f32 } else { 0.0 });
    }
    for property in p::LEFT..=p::BOTTOM {
        put(property, AUTO);
    }
    let mut style = random.u32(..4) << s::DIRECTION | random.u32(..3) << s::WRAP;
    style |= random.u32(..s::ALIGNS) << s::ALIGN_ITEMS
        | random.u32(..10) << s::ALIGN_CONTENT
        | random.u32(..10) << s::JUSTIFY;
    if random.f32() < 0.3 {
        style |= random.u32(..s::ALIGNS) << s::ALIGN_SELF;
    }
    if random.f32() < 0.08 {
        style = style & !(7 << s::ALIGN_SELF) | 1 << s::ABSOLUTE;
        for pair in [[p::LEFT, p::RIGHT], [p::TOP, p::BOTTOM]] {
            let which = random.usize(..3);
            (0..2)
                .filter(|side| which == *side || which == 2)
                .for_each(|side| put(pair[side], random.i32(-10..60) as f32));
        }
    }
    if random.f32() < 0.04 {
        style |= 1 << s::HIDDEN;
    }
    let children = if depth == 0 { 0 } else { random.usize(..6) };
    let children: Vec<Node> = (0..children).map(|_| node(random, depth - 1)).collect();
    if children.is_empty() {
        put(p::CONTENT_WIDTH, random.u32(..120) as f32);
        put(p::CONTENT_HEIGHT, random.u32(..60) as f32);
    }
    Node { lengths, style, children }
}

fn root(random: &mut Rng) -> Node {
    let mut it = node(random, 4);
    for (property, value) in
        [(p::WIDTH, 100.0 + random.u32(..500) as f32), (p::HEIGHT, 80.0 + random.u32(..400) as f32)]
    {
        it.lengths[property as usize] = value;
    }
    for property in [p::MIN_WIDTH, p::MIN_HEIGHT, p::MAX_WIDTH, p::MAX_HEIGHT, p::ASPECT, p::RIGHT, p::BOTTOM] {
        it.lengths[property as usize] = AUTO;
    }
    (p::MARGIN_LEFT..=p::TOP).for_each(|property| it.lengths[property as usize] = 0.0);
    it.style = it.style & !(7 << s::ALIGN_SELF | 1 << s::HIDDEN) | 1 << s::ABSOLUTE;
    it
}

fn style_of(node: &Node, is_root: bool) -> Style {
    let at = |property: u32| node.lengths[property as usize];
    let dimension =
        |property: u32| if at(property).is_nan() { Dimension::auto() } else { Dimension::length(at(property)) };
    let lp = |property: u32| LengthPercentage::length(at(property));
    let lpa = |property: u32| {
        if at(property).is_nan() { LengthPercentageAuto::auto() } else { LengthPercentageAuto::length(at(property)) }
    };
    let keyword = |shift: u32, mask: u32| node.style >> shift & mask;
    let items = |value: u32| match value {
        0 => None,
        s::START => Some(AlignItems::START),
        s::END => Some(AlignItems::END),
        s::FLEX_START => Some(AlignItems::FLEX_START),
        s::FLEX_END => Some(AlignItems::FLEX_END),
        s::CENTER => Some(AlignItems::CENTER),
        _ => Some(AlignItems::STRETCH),
    };
    let content = |value: u32| match value {
        0 => None,
        s::START => Some(AlignContent::START),
        s::END => Some(AlignContent::END),
        s::FLEX_START => Some(AlignContent::FLEX_START),
        s::FLEX_END => Some(AlignContent::FLEX_END),
        s::CENTER => Some(AlignContent::CENTER),
        s::STRETCH => Some(AlignContent::STRETCH),
        s::BETWEEN => Some(AlignContent::SPACE_BETWEEN),
        s::AROUND => Some(AlignContent::SPACE_AROUND),
        _ => Some(AlignContent::SPACE_EVENLY),
    };
    let absolute = keyword(s::ABSOLUTE, 1) != 0 && !is_root;
    let mut style = Style {
        display: if keyword(s::HIDDEN, 1) != 0 { Display::None } else { Display::Flex },
        position: if absolute { Position::Absolute } else { Position::Relative },
        size: Size { width: dimension(p::WIDTH), height: dimension(p::HEIGHT) },
        min_size: Size { width: lpa(p::MIN_WIDTH), height: lpa(p::MIN_HEIGHT) },
        max_size: Size { width: lpa(p::MAX_WIDTH), height: lpa(p::MAX_HEIGHT) },
        flex_basis: dimension(p::BASIS),
        flex_grow: at(p::GROW),
        flex_shrink: at(p::SHRINK),
        aspect_ratio: if at(p::ASPECT).is_nan() { None } else { Some(at(p::ASPECT)) },
        gap: Size { width: lp(p::GAP_X), height: lp(p::GAP_Y) },
        padding: Rect {
            left: lp(p::PAD_LEFT),
            top: lp(p::PAD_TOP),
            right: lp(p::PAD_RIGHT),
            bottom: lp(p::PAD_BOTTOM),
        },
        margin: Rect {
            left: lpa(p::MARGIN_LEFT),
            top: lpa(p::MARGIN_TOP),
            right: lpa(p::MARGIN_RIGHT),
            bottom: lpa(p::MARGIN_BOTTOM),
        },
        flex_direction: [
            FlexDirection::Row,
            FlexDirection::Column,
            FlexDirection::RowReverse,
            FlexDirection::ColumnReverse,
        ][keyword(s::DIRECTION, 3) as usize],
        flex_wrap: [FlexWrap::NoWrap, FlexWrap::Wrap, FlexWrap::WrapReverse][keyword(s::WRAP, 3) as usize],
        ..Style::default()
    };
    if absolute {
        style.inset = Rect { left: lpa(p::LEFT), top: lpa(p::TOP), right: lpa(p::RIGHT), bottom: lpa(p::BOTTOM) };
    }
    if let Some(align) = items(keyword(s::ALIGN_ITEMS, 7)) {
        style.align_items = align;
    }
    style.align_self = items(keyword(s::ALIGN_SELF, 7));
    if let Some(align) = content(keyword(s::ALIGN_CONTENT, 15)) {
        style.align_content = align;
    }
    if let Some(justify) = content(keyword(s::JUSTIFY, 15)) {
        style.justify_content = justify;
    }
    style
}

fn grow(tree: &mut TaffyTree<(f32, f32)>, it: &Node, is_root: bool) -> NodeId {
    let children: Vec<NodeId> = it.children.iter().map(|child| grow(tree, child, false)).collect();
    let style = style_of(it, is_root);
    if children.is_empty() {
        let content = (it.lengths[p::CONTENT_WIDTH as usize], it.lengths[p::CONTENT_HEIGHT as usize]);
        tree.new_leaf_with_context(style, content).unwrap()
    } else {
        tree.new_with_children(style, &children).unwrap()
    }
}

fn plant(desk: &mut Desk, it: &Node, parent: u32, next: &mut u32) {
    let widget = *next;
    *next += 1;
    desk.create(widget, if parent == 0 { kinds::WINDOW } else { kinds::PANEL }, parent);
    for (property, value) in it.lengths.iter().enumerate() {
        desk.set(widget, property as u32, *value);
    }
    desk.set_word(widget, p::STYLE, it.style);
    it.children.iter().for_each(|child| plant(desk, child, widget, next));
}

/// Compares all rectangles; returns how many, or the first that differs.
fn compare(
    desk: &Desk,
    tree: &TaffyTree<(f32, f32)>,
    node: NodeId,
    it: &Node,
    next: &mut u32,
    what: &str,
) -> Result<u32, String> {
    let widget = *next;
    *next += 1;
    let theirs = tree.layout(node).unwrap();
    let ours = [W_X, W_Y, W_W, W_H].map(|field| desk.number(field, widget));
    let theirs = [theirs.location.x, theirs.location.y, theirs.size.width, theirs.size.height];
    let near = ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= 0.01);
    if !near {
        return Err(format!("{what}, widget {widget}: ours {ours:?}, taffy's {theirs:?}"));
    }
    let mut count = 1;
    for (child, node) in it.children.iter().zip(tree.children(node).unwrap()) {
        if child.style >> s::HIDDEN & 1 != 0 {
            *next += size(child);
        } else {
            count += compare(desk, tree, node, child, next, what)?;
        }
    }
    Ok(count)
}

fn size(it: &Node) -> u32 {
    1 + it.children.iter().map(size).sum::<u32>()
}

fn taffy_of(it: &Node) -> (TaffyTree<(f32, f32)>, NodeId) {
    let mut tree = TaffyTree::new();
    tree.disable_rounding();
    let root = grow(&mut tree, it, true);
    let measure = |inputs, _, content: Option<&mut (f32, f32)>, style: &Style| {
        let content = content.map_or((0.0, 0.0), |content| *content);
        taffy::compute_leaf_layout(
            inputs,
            style,
            |_, _| 0.0,
            |known: Size<Option<f32>>, _| Size {
                width: known.width.unwrap_or(content.0),
                height: known.height.unwrap_or(content.1),
            },
        )
    };
    tree.compute_layout_with_measure(root, Size::MAX_CONTENT, measure).unwrap();
    (tree, root)
}

#[test]
fn random_trees_are_laid_out_as_taffy_does() {
    let trees = if std::env::var_os("GPU_RUN_TEST_ALL").is_some() { 20_000 } else { 1000 };
    let mut desk = Desk::boot();
    desk.resize(64, 64, 1.0);
    let (mut rectangles, mut differing) = (0, 0);
    for seed in 0..trees {
        let mut random = Rng::with_seed(seed);
        let it = root(&mut random);
        plant(&mut desk, &it, 0, &mut 1);
        desk.tick();
        assert_eq!(desk.word(D_REFUSED), 0);
        let (tree, node) = taffy_of(&it);
        match compare(&desk, &tree, node, &it, &mut 1, &format!("tree {seed}")) {
            Ok(count) => rectangles += count,
            Err(what) => {
                println!("{what}");
                differing += 1;
            }
        }
        desk.destroy(1);
    }
    println!("{trees} trees, {differing} differ, {rectangles} rectangles");
    // In the long sweep a few differ, and why is not known yet (docs/desktop.md).
    assert!(
        if trees == 1000 { differing == 0 } else { differing * 500 <= trees },
        "{differing} of {trees} trees differ"
    );
}

#[test]
fn what_changes_in_steps_is_laid_out_as_at_once() {
    let mut random = Rng::with_seed(4);
    for tree in 0..10 {
        let mut desk = Desk::boot();
        desk.resize(64, 64, 1.0);
        let mut it = root(&mut random);
        plant(&mut desk, &it, 0, &mut 1);
        desk.tick();
        let count = size(&it);
        for step in 0..12 {
            let (widget, property) = (random.u32(1..=count), random.u32(..=p::LAST_STYLE));
            if random.bool() {
                desk.text(widget, &"A text"[..random.usize(..6)]);
            } else {
                it = node(&mut random, 0);
                desk.set(widget, property, it.lengths[property as usize]);
            }
            desk.tick();
            let mut anew = desk.resumed();
            anew.world.look(|| (0..=count).for_each(|widget| mark(widget, F_DIRTY)));
            anew.tick();
            let places = |desk: &Desk| -> Vec<[u32; 4]> {
                let visible = (1..=count).filter(|widget| desk.of_widget(W_ORDER, *widget) != 0);
                visible.map(|widget| [W_X, W_Y, W_W, W_H].map(|field| desk.of_widget(field, widget))).collect()
            };
            assert_eq!(places(&desk), places(&anew), "tree {tree}, step {step}: property {property} of {widget}");
        }
    }
}

#[test]
fn a_text_that_gives_nothing_another_size_lays_nothing_out() {
    let mut desk = Desk::boot();
    desk.create(1, kinds::WINDOW, 0);
    (2..5).for_each(|label| desk.create(label, kinds::LABEL, 1));
    desk.set(2, p::WIDTH, 100.0);
    desk.tick();
    let mut is_laid_out = |label: u32, text: &str| {
        // Layout would put this right.
        desk.world.look(|| setf(W_X, 4, 55.0));
        desk.text(label, text);
        desk.tick();
        desk.tick();
        desk.number(W_X, 4) != 55.0
    };
    assert!(!is_laid_out(2, "A label that is told its width"));
    assert!(is_laid_out(3, "A label that has its text's"));
    assert!(!is_laid_out(3, "text's its has that label A"));
    assert!(is_laid_out(3, "Another width"));
    assert!(!is_laid_out(1, "A title of what has other content"));
}
