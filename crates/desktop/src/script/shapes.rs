//! Shapes that a script draws on canvases and images: each becomes runs of equal pixels.

use super::words::list;

/// A shape: its name, what its numbers mean, and whether a point lies in it. A `…` says that more pairs may follow.
#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    numbers: &'static str,
    contains: fn(&[f32], f32, f32) -> bool,
}

pub(crate) const SHAPES: [Shape; 5] = [
    Shape { name: "fill", numbers: "", contains: |_, _, _| true },
    Shape { name: "rectangle", numbers: "X Y WIDTH HEIGHT", contains: rectangle },
    Shape { name: "circle", numbers: "X Y RADIUS", contains: circle },
    Shape { name: "line", numbers: "X Y X Y WIDTH", contains: line },
    Shape { name: "polygon", numbers: "X Y X Y X Y …", contains: polygon },
];

fn rectangle(at: &[f32], x: f32, y: f32) -> bool {
    let [left, top, width, height] = [0, 1, 2, 3].map(|i| at[i]);
    x >= left && x < left + width && y >= top && y < top + height
}

fn circle(at: &[f32], x: f32, y: f32) -> bool {
    let (dx, dy) = (x - at[0], y - at[1]);
    dx * dx + dy * dy <= at[2] * at[2]
}

/// The pixels within half the width of a line with round ends.
fn line(at: &[f32], x: f32, y: f32) -> bool {
    let (dx, dy) = (at[2] - at[0], at[3] - at[1]);
    let square = dx * dx + dy * dy;
    let share = if square > 0.0 { ((x - at[0]) * dx + (y - at[1]) * dy) / square } else { 0.0 };
    let share = share.clamp(0.0, 1.0);
    circle(&[at[0] + share * dx, at[1] + share * dy, at[4] / 2.0], x, y)
}

/// By the even-odd rule.
fn polygon(at: &[f32], x: f32, y: f32) -> bool {
    let corner = |i: usize| (at[i * 2 % at.len()], at[(i * 2 + 1) % at.len()]);
    let crosses = |i: &usize| {
        let ((x0, y0), (x1, y1)) = (corner(*i), corner(*i + 1));
        (y0 > y) != (y1 > y) && x < x0 + (y - y0) / (y1 - y0) * (x1 - x0)
    };
    (0..at.len() / 2).filter(crosses).count() % 2 == 1
}

/// Equal pixels beside each other: the number of the first, how many there are, and their colour, 24 bits with red lowest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) first: u32,
    pub(crate) count: u32,
    pub(crate) colour: u32,
}

/// Returns the runs of a shape on so many pixels.
pub(crate) fn runs((width, height): (u32, u32), name: &str, colour: &str, numbers: &[f32]) -> Result<Vec<Run>, String> {
    let shape = SHAPES.iter().find(|shape| shape.name == name);
    let shape = shape
        .ok_or_else(|| format!("`{name}` is no shape; there are {}", list(SHAPES.iter().map(|shape| shape.name))))?;
    let colours = colours(colour)?;
    let count = shape.numbers.split_whitespace().filter(|word| *word != "…").count();
    let fits = match shape.numbers.ends_with('…') {
        true => numbers.len() >= count && numbers.len().is_multiple_of(2),
        false => numbers.len() == count,
    };
    if !fits {
        let numbers = if count == 0 { "nothing" } else { shape.numbers };
        return Err(format!("behind a {name}'s colour comes {numbers}"));
    }
    let mut runs: Vec<(u32, u32, u32)> = Vec::new();
    for row in 0..height {
        let inside = |column: &u32| (shape.contains)(numbers, *column as f32 + 0.5, row as f32 + 0.5);
        let mut column = 0;
        while column < width {
            let count = (column..width).take_while(inside).count() as u32;
            if count > 0 {
                runs.push((row, column, count));
            }
            column += count.max(1);
        }
    }
    let (first, last) = (runs.first().map_or(0, |run| run.0), runs.last().map_or(0, |run| run.0));
    let coloured = |(row, column, count): (u32, u32, u32)| {
        let colour = mix(colours, row - first, last - first);
        Run { first: row * width + column, count, colour }
    };
    Ok(runs.into_iter().map(coloured).collect())
}

/// The colour `part` of `whole` steps from the first to the second.
fn mix((from, to): (u32, u32), part: u32, whole: u32) -> u32 {
    let channel = |shift: u32| {
        let (from, to) = (from >> shift & 255, to >> shift & 255);
        let whole = whole.max(1);
        ((from * (whole - part.min(whole)) + to * part + whole / 2) / whole) << shift
    };
    channel(0) | channel(8) | channel(16)
}

/// Six hexadecimal digits, red, green and blue; or two of these with `-` between: from the top to the bottom.
fn colours(word: &str) -> Result<(u32, u32), String> {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    Ok((colour(from)?, colour(to)?))
}

/// Six hexadecimal digits, red, green and blue.
pub(crate) fn colour(word: &str) -> Result<u32, String> {
    let is_hex = word.len() == 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hex = if is_hex { u32::from_str_radix(word, 16).ok() } else { None };
    let hex = hex.ok_or_else(|| format!("`{word}` is no colour such as 2563EB: red, green and blue"))?;
    Ok(hex.swap_bytes() >> 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pixels of a shape, a `#` for each, its rows separated by spaces.
    fn drawn(size: (u32, u32), name: &str, numbers: &[f32]) -> String {
        let mut picture = vec!['.'; (size.0 * size.1) as usize];
        for run in runs(size, name, "000000", numbers).unwrap() {
            picture[run.first as usize..][..run.count as usize].fill('#');
        }
        let rows: Vec<String> = picture.chunks(size.0 as usize).map(|row| row.iter().collect()).collect();
        rows.join(" ")
    }

    #[test]
    fn shapes_have_the_pixels_whose_middle_they_contain() {
        assert_eq!(drawn((3, 2), "fill", &[]), "### ###");
        assert_eq!(drawn((4, 3), "rectangle", &[1.0, -5.0, 2.0, 7.0]), ".##. .##. ....");
        assert_eq!(drawn((5, 5), "circle", &[2.5, 2.5, 2.3]), ".###. ##### ##### ##### .###.");
        assert_eq!(drawn((5, 3), "line", &[0.5, 1.5, 4.5, 1.5, 1.0]), "..... ##### .....");
        assert_eq!(drawn((4, 4), "line", &[0.5, 0.5, 3.5, 3.5, 1.0]), "#... .#.. ..#. ...#");
        assert_eq!(drawn((4, 4), "line", &[1.5, 1.5, 1.5, 1.5, 1.0]), ".... .#.. .... ....");
        assert_eq!(drawn((4, 4), "polygon", &[0.0, 0.0, 4.0, 0.0, 0.0, 4.0]), "###. ##.. #... ....");
        // Two triangles, of which a line cuts both.
        assert_eq!(drawn((4, 2), "polygon", &[0.0, 0.0, 4.0, 2.0, 4.0, 0.0, 0.0, 2.0]), "#..# #..#");
        assert_eq!(drawn((2, 2), "circle", &[9.0, 9.0, 1.0]), ".. ..");
    }

    #[test]
    fn colours_go_from_the_top_of_a_shape_to_its_bottom() {
        let runs = runs((2, 4), "rectangle", "FF0000-000080", &[0.0, 1.0, 2.0, 3.0]).unwrap();
        let colours: Vec<u32> = runs.iter().map(|run| run.colour).collect();
        assert_eq!(colours, [0x0000FF, 0x400080, 0x800000]);
        assert_eq!(runs[0], Run { first: 2, count: 2, colour: 0x0000FF });
    }
}
