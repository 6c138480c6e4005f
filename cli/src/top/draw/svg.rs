//! A picture of a terminal, for the documentation: text in cells, as SVG.

use std::fmt::Write as _;

use vt100::{Cell, Color, Screen};

/// The size of a cell in pixels, and where the baseline of its text is.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const BASELINE: f64 = 13.5;

/// The space around the cells.
const MARGIN: f64 = 10.0;

const INK: &str = "#d4d4d4";
const PAPER: &str = "#1e1e1e";

/// The first 16 colours of a terminal.
const COLOURS: [&str; 16] = [
    "#1e1e1e", "#f47067", "#6bc46d", "#daaa3f", "#539bf5", "#b083f0", "#39c5cf",
    "#d4d4d4", "#8b949e", "#ff938a", "#8ddb8c", "#eac55f", "#6cb6ff", "#dcbdfb",
    "#56d4dd", "#ffffff",
];

/// The screen as an SVG.
pub(super) fn picture(screen: &Screen) -> String {
    let (lines, columns) = screen.size();
    let (lines, columns) = (lines.get(), columns.get());
    let wide = f64::from(columns) * WIDTH + 2.0 * MARGIN;
    let high = f64::from(lines) * HEIGHT + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {wide:.1} {high:.1}\" \
         font-family=\"Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"14\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{PAPER}\"/>\n"
    );
    for line in 0..lines {
        for run in runs(screen, line, columns) {
            run.write(&mut svg, line);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// Cells of one line that look alike.
struct Run {
    from: u16,
    cells: u16,
    text: String,
    look: Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    ink: &'static str,
    paper: &'static str,
    is_bold: bool,
    is_underlined: bool,
}

fn runs(screen: &Screen, line: u16, columns: u16) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for column in 0..columns {
        let Some(cell) = screen.cell(line, column) else { continue };
        let text = if cell.has_contents() { cell.contents() } else { " " };
        let look = look(cell);
        match runs.last_mut().filter(|run| run.look == look) {
            Some(run) => {
                run.text.push_str(text);
                run.cells += 1;
            }
            None => {
                runs.push(Run { from: column, cells: 1, text: text.to_owned(), look });
            }
        }
    }
    runs
}

fn look(cell: &Cell) -> Look {
    let (ink, paper) = (colour(cell.fgcolor(), INK), colour(cell.bgcolor(), PAPER));
    let (ink, paper) = if cell.inverse() { (paper, ink) } else { (ink, paper) };
    Look { ink, paper, is_bold: cell.bold(), is_underlined: cell.underline() }
}

fn colour(colour: Color, default: &'static str) -> &'static str {
    match colour {
        Color::Idx(number) => {
            COLOURS.get(usize::from(number)).copied().unwrap_or(default)
        }
        _ => default,
    }
}

impl Run {
    fn write(&self, svg: &mut String, line: u16) {
        let x = f64::from(self.from) * WIDTH + MARGIN;
        let y = f64::from(line) * HEIGHT + MARGIN;
        let wide = f64::from(self.cells) * WIDTH;
        let Look { ink, paper, is_bold, is_underlined } = self.look;
        if paper != PAPER {
            // Writing to a string cannot fail.
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{wide:.1}\" height=\"{HEIGHT}\" \
                 fill=\"{paper}\"/>"
            );
        }
        let shown = self.text.trim();
        if shown.is_empty() {
            return;
        }
        let blanks = self.text.chars().take_while(|c| *c == ' ').count();
        let ends = self.text.chars().rev().take_while(|c| *c == ' ').count();
        // A browser shows no blanks at the ends of a text, and one in place of several.
        let x = x + WIDTH * count(blanks);
        let wide = wide - WIDTH * count(blanks + ends);
        let bold = if is_bold { " font-weight=\"bold\"" } else { "" };
        let line = if is_underlined { " text-decoration=\"underline\"" } else { "" };
        let baseline = y + BASELINE;
        let text = escaped(shown);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{baseline:.1}\" textLength=\"{wide:.1}\" \
             lengthAdjust=\"spacingAndGlyphs\" fill=\"{ink}\"{bold}{line}>{text}</text>"
        );
    }
}

fn count(cells: usize) -> f64 {
    f64::from(u16::try_from(cells).unwrap_or(u16::MAX))
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace(' ', "\u{a0}")
}
