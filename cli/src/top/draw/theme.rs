//! The looks of the parts of the screen, with colours and without.

use ratatui::style::{Color, Modifier, Style};

/// The meaning of a text, which decides its style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Quiet,
    Title,
    Frozen,
    Head,
    /// The head of the column by which a table is sorted, and the open tab.
    Chosen,
    /// The key of a command.
    Key,
    Good,
    Warning,
    Bad,
    /// Small charts.
    Chart,
    /// The selected row.
    Selected,
}

/// How tones look.
#[derive(Debug, Clone, Copy)]
pub(super) struct Theme {
    has_colours: bool,
}

impl Theme {
    pub(super) fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    pub(super) fn style(self, tone: Tone) -> Style {
        if self.has_colours { coloured(tone) } else { plain(tone) }
    }
}

fn coloured(tone: Tone) -> Style {
    let fg = |colour| Style::new().fg(colour);
    match tone {
        Tone::Plain => Style::new(),
        Tone::Quiet => fg(Color::DarkGray),
        Tone::Title => fg(Color::Black).bg(Color::Cyan),
        Tone::Frozen => fg(Color::Black).bg(Color::Yellow),
        Tone::Head => fg(Color::Cyan),
        Tone::Chosen => {
            fg(Color::Cyan).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        }
        Tone::Key => fg(Color::Cyan).add_modifier(Modifier::BOLD),
        Tone::Good | Tone::Chart => fg(Color::Green),
        Tone::Warning => fg(Color::Yellow),
        Tone::Bad => fg(Color::Red),
        Tone::Selected => fg(Color::Black).bg(Color::Gray),
    }
}

/// Without colours only what must be told apart looks different.
fn plain(tone: Tone) -> Style {
    let with = |modifier| Style::new().add_modifier(modifier);
    match tone {
        Tone::Plain | Tone::Quiet | Tone::Good | Tone::Chart | Tone::Head => {
            Style::new()
        }
        Tone::Title | Tone::Frozen | Tone::Selected => with(Modifier::REVERSED),
        Tone::Chosen => with(Modifier::BOLD | Modifier::UNDERLINED),
        Tone::Key | Tone::Warning | Tone::Bad => with(Modifier::BOLD),
    }
}
