//! A user of a Redis server, described by one line of an ACL file.

use std::collections::BTreeSet;

use relq_core::QueueName;

/// A user of a Redis server: its name and its rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    rules: Vec<String>,
}

impl User {
    /// Returns the first user that the text of a README names, if any.
    pub fn in_readme(text: &str) -> Option<Self> {
        text.lines().find_map(Self::in_line)
    }

    /// Returns the user `name` from the text of a README, if the README names it.
    pub fn named(text: &str, name: &str) -> Option<Self> {
        text.lines().filter_map(Self::in_line).find(|user| user.name == name)
    }

    fn in_line(line: &str) -> Option<Self> {
        let is_user = line.starts_with("user ") && line.contains(" on ");
        let mut words = line.split_whitespace().skip(1).map(str::to_owned);
        let name = words.next().filter(|_| is_user)?;
        Some(Self { name, rules: words.collect() })
    }

    /// Returns the ACL rules of the user, such as `+get`, one by one.
    pub fn rules(&self) -> &[String] {
        &self.rules
    }

    /// Returns the commands that the user's rules allow by name.
    pub fn commands(&self) -> BTreeSet<String> {
        let allowed = self.rules.iter().filter_map(|rule| rule.strip_prefix('+'));
        allowed.map(str::to_owned).collect()
    }

    /// Returns the same user without one of its rules.
    #[must_use]
    pub fn without(&self, rule: &str) -> Self {
        self.changed(|rules| rules.retain(|known| known != rule))
    }

    /// Returns the same user with exactly these commands, in alphabetical order.
    #[must_use]
    pub fn with_commands(&self, commands: &BTreeSet<String>) -> Self {
        self.changed(|rules| {
            rules.retain(|rule| !rule.starts_with(['+', '-']));
            rules.extend(commands.iter().map(|command| format!("+{command}")));
        })
    }

    /// Returns the same user with access to the keys of every queue.
    #[must_use]
    pub fn with_all_keys(&self) -> Self {
        self.changed(|rules| rules.push("allkeys".to_owned()))
    }

    fn changed(&self, change: impl FnOnce(&mut Vec<String>)) -> Self {
        let mut changed = self.clone();
        change(&mut changed.rules);
        changed
    }

    /// Returns the text `readme`, in which this user replaces the user of the same
    /// name.
    pub(super) fn written_to(&self, readme: &str) -> String {
        let is_its = |line: &str| {
            Self::in_line(line).is_some_and(|known| known.name == self.name)
        };
        let lines = readme.split('\n');
        let lines =
            lines.map(|line| if is_its(line) { self.line() } else { line.to_owned() });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Returns the line of an ACL file that describes the user.
    pub(super) fn line(&self) -> String {
        format!("user {} {}", self.name, self.rules.join(" "))
    }

    pub(super) fn password(&self) -> &str {
        self.rules.iter().find_map(|rule| rule.strip_prefix('>')).unwrap_or_default()
    }

    /// Returns the words of an `ACL SETUSER` command. The command creates the user on a
    /// server under the name `name`, with rights to `queue` only.
    pub fn command(&self, name: &str, queue: &QueueName) -> Vec<String> {
        let begin = ["ACL", "SETUSER", name, "reset"].map(str::to_owned);
        let queue = literal(queue.as_str());
        let is_pattern = |rule: &str| rule.starts_with(['~', '%', '&']);
        let rules = self.rules.iter().map(|rule| {
            if is_pattern(rule) { rule.replace('Q', &queue) } else { rule.clone() }
        });
        begin.into_iter().chain(rules).collect()
    }
}

/// Returns an ACL pattern that matches exactly this text. A space becomes `?`, which
/// matches any byte, because a rule cannot contain a space.
fn literal(text: &str) -> String {
    let mut pattern = String::new();
    for symbol in text.chars() {
        match symbol {
            ' ' => pattern.push('?'),
            '*' | '?' | '[' | ']' | '\\' => pattern.extend(['\\', symbol]),
            _ => pattern.push(symbol),
        }
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "Its users:\n```text\n\
        user relq on >secret ~Q ~{Q}:* +get +script|load\n\
        user viewer on >seen ~Q +get\n```\n";

    #[test]
    fn a_readme_names_its_users() {
        let user = User::in_readme(README).unwrap();

        let rules = ["on", ">secret", "~Q", "~{Q}:*", "+get", "+script|load"];
        assert_eq!(user.rules(), rules);
        assert_eq!(user.password(), "secret");
        assert_eq!(user.commands(), ["get", "script|load"].map(str::to_owned).into());
        assert_eq!(user.without("~Q").rules().len(), 5);
        assert_eq!(User::named(README, "viewer").unwrap().password(), "seen");
        assert_eq!(User::named(README, "admin"), None);
        assert_eq!(User::in_readme("The user comes on Monday."), None);
    }

    #[test]
    fn a_user_takes_the_place_of_the_one_of_its_name() {
        let commands = ["set", "lpush"].map(str::to_owned).into();
        let user = User::in_readme(README).unwrap().with_commands(&commands);

        let written = user.written_to(README);

        assert_eq!(written, README.replace("+get +script|load", "+lpush +set"));
        assert_eq!(User::in_readme(&written), Some(user));
    }

    #[test]
    fn a_queue_gets_its_own_keys_and_no_others() {
        let user = User::in_readme(README).unwrap().without("+script|load");
        let queue = QueueName::new("a*").unwrap();

        let command = user.command("name", &queue);

        let rules = ["on", ">secret", "~a\\*", "~{a\\*}:*", "+get"];
        assert_eq!(command[..4], ["ACL", "SETUSER", "name", "reset"]);
        assert_eq!(command[4..], rules);
    }
}
