//! Words of scripts have their effects. `refused.txt` beside this file has what is refused (`src/script/mod.rs` reads it).

use crate::run;
use gpu_run_desktop::event::{self as e, icons};
use gpu_run_desktop::{Desktop, map};

fn desktop(script: &str) -> Desktop {
    run(script, (400, 600), (1, 32))
}

fn field(desktop: &Desktop, field: u32, widget: u32) -> u32 {
    desktop.word(field + widget * 4).unwrap()
}

fn number(desktop: &Desktop, at: u32, widget: u32) -> f32 {
    f32::from_bits(field(desktop, at, widget))
}

/// What owners were told: the kind, the widget and the first word.
fn told(desktop: &Desktop) -> Vec<(u16, u32, u32)> {
    desktop.told().iter().map(|event| (event.kind, event.key, event.a)).collect()
}

#[test]
fn the_desktop_takes_every_word() {
    let desktop = run(include_str!("every-word.txt"), (640, 640), (1, 64));
    assert_eq!(desktop.word(map::D_REFUSED).unwrap(), 0);
    assert_eq!(desktop.text(0).unwrap(), "Terminal\nFiles\nEditor");
    assert_eq!(desktop.word(map::D_ACCENT).unwrap(), 0xFF00_8CF0);
}

#[test]
fn menus_tabs_and_lists_are_chosen_from() {
    let desktop = desktop(
        "window w \"W\" left=10 top=10 width=300\n\
         button b in w \"File\" icon=gear\n\
         menu m in b \"New\" \"-\" \"Quit\"\n\
         tabs t in w \"One\" \"Two\" \"Three\" selected=1\n\
         list l in w \"a\" \"b\" \"c\" selected=1\n\
         table x in w \"A\\tB\" \"1\\t2\"\n\
         add x \"3\\t4\"\n\
         click b\nkey down\nkey down\nkey enter\nframes 1\n\
         set t focus=yes\nkey right\nframes 1\n\
         set l focus=yes\nkey down\nkey enter\nframes 1\n\
         set x focus=yes\nkey end",
    );
    let expected = [(e::CHOSEN, 3, 2), (e::CHOSEN, 4, 2), (e::CHOSEN, 5, 2), (e::ENTERED, 5, 2), (e::CHOSEN, 6, 1)];
    assert_eq!(told(&desktop), expected);
    assert_eq!(field(&desktop, map::W_ICON, 2), icons::GEAR);
    assert_eq!(desktop.text(6).unwrap(), "A\tB\n1\t2\n3\t4");
}

#[test]
fn an_open_menu_and_a_tooltip_show() {
    let desktop = desktop(
        "window w \"W\" left=10 top=10 width=300\ncheckbox c in w \"C\"\ntooltip t in c \"Tip\"\n\
         button b in w \"File\"\nmenu m in b \"New\" open=yes\nhover c",
    );
    assert_eq!((desktop.word(map::D_MENU).unwrap(), desktop.word(map::D_TIP).unwrap()), (5, 3));
}

#[test]
fn shapes_are_pixels_of_a_canvas() {
    let desktop = desktop(
        "window w \"W\"\ncanvas c in w pixels=3x2\ndraw c fill 102030\ndraw c rectangle FF8000 1 0 1 5\n\
         image i in w pixels=2x2 aspect=1\ndraw i polygon FFFFFF 0 0 2 0 0 2",
    );
    let pixels = |widget: u32, count: u32| -> Vec<u32> {
        let first = field(&desktop, map::W_PIXELS, widget) + map::BANDS;
        (0..count).map(|i| desktop.word(map::PIXEL_ARENA + (first + i) * 4).unwrap()).collect()
    };
    assert_eq!(pixels(2, 6), [0x302010, 0x0080FF, 0x302010, 0x302010, 0x0080FF, 0x302010]);
    assert_eq!(pixels(3, 4), [0xFFFFFF, 0, 0, 0]);
}

#[test]
fn points_are_values_of_a_plot() {
    let desktop = desktop("window w \"W\"\nplot p in w greatest=8\npoints p 1 over 3 0 4\npoints p 1 7");
    assert_eq!(number(&desktop, map::W_GREATEST, 2), 8.0);
    let series = map::PLOT_ARENA + (field(&desktop, map::W_PLOT, 2) - 1) * map::PLOT_BYTES + (map::VALUES + 1) * 4;
    assert_eq!(desktop.word(series).unwrap(), 4);
    let values = [0, 1, 2, 3].map(|i| f32::from_bits(desktop.word(series + 4 + i * 4).unwrap()));
    assert_eq!(values, [0.0, 2.0, 4.0, 7.0]);
}

#[test]
fn panels_scroll_by_wheel_and_by_property() {
    let rows = |panel: &str| (0..20).map(|i| format!("label {panel}{i} in {panel} \"Row\"\n")).collect::<String>();
    let desktop = desktop(&format!(
        "window w \"W\" left=10 top=10 width=300\nscroll a in w height=60\nscroll b in w height=60 scrolled=40\n{}{}wheel a 25",
        rows("a"),
        rows("b")
    ));
    assert_eq!((number(&desktop, map::W_SCROLL, 2), number(&desktop, map::W_SCROLL, 3)), (25.0, 40.0));
}

#[test]
fn texts_are_pasted_and_kept_from_typing() {
    let desktop = desktop(
        "window w \"W\" left=10 top=10 width=300\nfield f in w\narea a in w \"one\"\narea r in w \"kept\" read-only=yes\n\
         set f focus=yes\nframes 1\npaste \"a\\tb\" \"c\"\nframes 1\n\
         set a focus=yes\nframes 1\nkey end\npaste \"\" \"two\"\nframes 1\n\
         set r focus=yes\nframes 1\npaste \"lost\"\ntype \"lost\"",
    );
    let texts = [2, 3, 4].map(|widget| desktop.text(widget).unwrap());
    assert_eq!(texts, ["a b c", "one\ntwo", "kept"]);
}

#[test]
fn a_minimised_window_does_not_show() {
    let desktop =
        desktop("text desktop \"App\"\nwindow w \"W\" minimised=yes\nwindow v \"V\" minimised=yes\nset v minimised=no");
    assert!(desktop.middle(1).unwrap().is_none() && desktop.middle(2).unwrap().is_some());
}
