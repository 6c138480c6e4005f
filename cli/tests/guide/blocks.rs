//! The blocks of a page that are for a shell, and their commands.

/// The commands of all blocks of the page that are for a shell, in their order, without
/// the comments.
pub(crate) fn commands_of_page(text: &str) -> Vec<String> {
    let blocks = fenced(text).into_iter().filter(Block::is_for_a_shell);
    blocks.flat_map(|block| commands(&block.text)).collect()
}

/// The page without its fenced blocks.
pub(crate) fn prose(text: &str) -> String {
    let mut is_inside = false;
    let outside = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        !is_inside && !is_fence
    });
    outside.collect::<Vec<_>>().join("\n")
}

struct Block {
    language: String,
    text: String,
}

impl Block {
    /// Whether a reader would give this block to a shell: by its language, or because a
    /// line of plain text is a call of the program.
    fn is_for_a_shell(&self) -> bool {
        match self.language.as_str() {
            "sh" | "bash" | "shell" | "console" => true,
            "text" | "" => self.text.lines().any(|line| line.starts_with("relq ")),
            _ => false,
        }
    }
}

fn fenced(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in text.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, open.take()) {
            (Some(_), Some(block)) => blocks.push(block),
            (Some(info), None) => {
                let language = info.split([' ', ',']).next().unwrap_or_default();
                open =
                    Some(Block { language: language.to_owned(), text: String::new() });
            }
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

/// Splits the text at the ends of its commands, and removes the comments.
fn commands(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let (mut command, mut quote) = (String::new(), None);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (quote, character) {
            (None, '#') if command.is_empty() || command.ends_with([' ', '\n']) => {
                while characters.next_if(|it| *it != '\n').is_some() {}
            }
            (None, '\n') if !goes_on(&command) => {
                found.push(std::mem::take(&mut command).trim().to_owned());
            }
            (None, '\'' | '"') => {
                quote = Some(character);
                command.push(character);
            }
            _ => {
                if quote == Some(character) {
                    quote = None;
                }
                command.push(character);
            }
        }
    }
    assert!(command.trim().is_empty(), "no end: {command}");
    found.retain(|command| !command.is_empty());
    found
}

/// Whether the shell reads the next line, too, before it runs the command.
fn goes_on(command: &str) -> bool {
    let command = command.trim_end();
    ["|", "&&", "\\"].iter().any(|end| command.ends_with(end))
}

#[test]
fn commands_end_with_their_lines() {
    let text = "# a\nrelq a  # b\nx '# c\nd' \\\n  e | # f\n g && \\\nh\n\ni &\n";
    let split = commands(text);
    assert_eq!(split, ["relq a", "x '# c\nd' \\\n  e | \n g && \\\nh", "i &"]);
}

#[test]
fn blocks_for_a_shell_are_found() {
    let text = "a\n```sh\nrelq a\n```\n```rust\nrelq b\n```\n  ```text\nrelq c\n  ```\n\
                ```text\nd relq\n```\n`relq e`\n```sh list\nf\n```\n";
    assert_eq!(commands_of_page(text), ["relq a", "relq c", "f"]);
    assert_eq!(prose(text), "a\n`relq e`");
}
