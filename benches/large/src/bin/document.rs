//! Writes an invoice as a PDF of about 600 KB to stdout: a page of text, and a picture that every invoice has.
//!
//! The invoice is one line on stdin: `NUMBER;CUSTOMER;COUNT x ARTICLE @ CENTS;…`

use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str};
use std::io::{self, Read, Write};

const PICTURE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/picture.rgb"));
const WIDTH: i32 = 480;
const HEIGHT: i32 = 416;
/// A4, in points.
const PAGE: Rect = Rect { x1: 0.0, y1: 0.0, x2: 595.0, y2: 842.0 };
const FONT: Name = Name(b"Text");
const IMAGE: Name = Name(b"Picture");

struct Item<'a> {
    count: u64,
    article: &'a str,
    cents: u64,
}

fn main() -> io::Result<()> {
    let mut record = String::new();
    io::stdin().read_to_string(&mut record)?;
    let mut fields = record.trim_end().split(';');
    let number = fields.next().unwrap_or_default();
    let customer = fields.next().unwrap_or_default();
    let Some(items) = fields.map(item).collect::<Option<Vec<Item>>>() else {
        return Err(io::Error::other("expected NUMBER;CUSTOMER;COUNT x ARTICLE @ CENTS;…"));
    };
    io::stdout().lock().write_all(&document(&page(number, customer, &items)))
}

/// `3 x pencil @ 120`
fn item(text: &str) -> Option<Item<'_>> {
    let (count, rest) = text.split_once(" x ")?;
    let (article, cents) = rest.rsplit_once(" @ ")?;
    Some(Item { count: count.trim().parse().ok()?, article, cents: cents.trim().parse().ok()? })
}

/// What is drawn on the page, compressed.
fn page(number: &str, customer: &str, items: &[Item]) -> Vec<u8> {
    let mut content = Content::new();
    content.save_state().transform([240.0, 0.0, 0.0, 200.0, 177.0, 600.0]).x_object(IMAGE).restore_state();
    content.begin_text().set_leading(16.0).next_line(72.0, 570.0);
    let mut line = |size: f32, text: &str| {
        content.set_font(FONT, size).show(Str(text.as_bytes())).next_line(0.0, -1.6 * size);
    };
    line(18.0, &format!("Invoice {number}"));
    line(12.0, customer);
    for Item { count, article, cents } in items {
        line(10.0, &format!("{count:>4} {article:<24} {:>10}", money(count * cents)));
    }
    line(12.0, &format!("To pay: {}", money(items.iter().map(|item| item.count * item.cents).sum())));
    content.end_text();
    miniz_oxide::deflate::compress_to_vec_zlib(&content.finish(), 6)
}

fn money(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn document(page: &[u8]) -> Vec<u8> {
    let [catalog, pages, only_page, font, image, content] = [1, 2, 3, 4, 5, 6].map(Ref::new);
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([only_page]).count(1);
    let mut description = pdf.page(only_page);
    description.media_box(PAGE).parent(pages).contents(content);
    let mut resources = description.resources();
    resources.x_objects().pair(IMAGE, image);
    resources.fonts().pair(FONT, font);
    resources.finish();
    description.finish();
    pdf.type1_font(font).base_font(Name(b"Courier"));
    let mut picture = pdf.image_xobject(image, PICTURE);
    picture.width(WIDTH).height(HEIGHT).bits_per_component(8).color_space().device_rgb();
    picture.finish();
    pdf.stream(content, page).filter(Filter::FlateDecode);
    pdf.finish()
}
