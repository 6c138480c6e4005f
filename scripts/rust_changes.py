"""Small changes of Rust sources for `mutation-score`, all in one build.

Every change is off until a test program starts with its number in the environment. A
change that would be made on its own by replacing `a < b` stands in the sources as a
`match` on that number, with the original as the last arm. So the sources compile once, and
a program also tells which changes a test reaches.

Needs the packages tree-sitter and tree-sitter-rust.
"""

import re

import tree_sitter
import tree_sitter_rust

PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))
MODULE = "crate::mutation_switch"

OPERATORS = {
    "==": ["!="],
    "!=": ["=="],
    "<": ["<=", ">="],
    "<=": ["<", ">"],
    ">": [">=", "<="],
    ">=": [">", "<"],
    "&&": ["||"],
    "||": ["&&"],
    "+": ["-"],
    "-": ["+"],
    "*": ["/"],
    "/": ["*"],
    "%": ["/"],
}
ASSIGNMENTS = {"+=": "-=", "-=": "+=", "*=": "/=", "|=": "&=", "&=": "|="}
METHODS = {
    "all": "any",
    "any": "all",
    "first": "last",
    "is_err": "is_ok",
    "is_none": "is_some",
    "is_ok": "is_err",
    "is_some": "is_none",
    "last": "first",
    "max": "min",
    "min": "max",
    "saturating_add": "saturating_sub",
    "saturating_sub": "saturating_add",
}
# A switch cannot stand in constants, types and patterns. What a macro is given is no syntax
# that the parser knows.
LEFT_ALONE = {
    "array_type",
    "attribute_item",
    "const_block",
    "const_item",
    "enum_variant",
    "inner_attribute_item",
    "macro_definition",
    "macro_invocation",
    "parameters",
    "raw_string_literal",
    "static_item",
    "string_literal",
    "type_arguments",
    "type_parameters",
    "use_declaration",
    "visibility_modifier",
    "where_clause",
}
# Their negation is a change of another kind.
COMPARES = {
    "binary_expression",
    "boolean_literal",
    "let_chain",
    "let_condition",
    "macro_invocation",
    "parenthesized_expression",
    "unary_expression",
}
IS_TEST = re.compile(r"cfg\(.*\btest\b|#\[test\]|::test\b")


class Source:
    """The changes of one source file, numbered from `first`, and its text with all of them.

    `without` holds the names of changes that do not compile.
    """

    def __init__(self, path, source, first, without):
        self.source = source
        self.names = []
        self._path, self._first, self._without = path, first, without
        self._seen, self._place, self._wild = {}, [], set()
        self.text = self._render(PARSER.parse(source).root_node)

    def _number(self, what):
        """The number of a new change, or None if it is not to be made."""
        name = f"{self._path}: {'::'.join(self._place)}: {what}"
        self._seen[name] = self._seen.get(name, 0) + 1
        if self._seen[name] > 1:
            name += f" ({self._seen[name]})"
        if name in self._without:
            return None
        self.names.append(name)
        return self._first + len(self.names) - 1

    def _of(self, node):
        return self.source[node.start_byte : node.end_byte].decode()

    def _between(self, start, end):
        return self.source[start:end].decode()

    def _short(self, node):
        return re.sub(r"\s+", " ", self._of(node))[:60]

    def _render(self, node):
        if node.type in LEFT_ALONE:
            return self._of(node)
        return getattr(self, f"_render_{node.type}", self._inside)(node)

    def _inside(self, node, given=()):
        """The text of a node with the changes of its children. `given` has the text of
        children that are already rendered, by their number."""
        given, text, at, is_test = dict(given), "", node.start_byte, False
        for child in node.children:
            text += self._between(at, child.start_byte)
            at = child.end_byte
            if child.type == "attribute_item":
                is_test = is_test or bool(IS_TEST.search(self._of(child)))
                text += self._of(child)
            elif "comment" in child.type:
                text += self._of(child)
            elif is_test:
                text, is_test = text + self._of(child), False
            else:
                text += given[child.id] if child.id in given else self._render(child)
        return text + self._between(at, node.end_byte)

    def _either(self, number, changed, text):
        if number is None:
            return text
        return f"(if {MODULE}::at({number}) {{ {changed} }} else {{ {text} }})"

    def _render_impl_item(self, node):
        trait = node.child_by_field_name("trait")
        if trait is not None and self._of(trait).endswith("Debug"):
            return self._of(node)
        self._place.append(self._of(node.child_by_field_name("type")))
        text = self._inside(node)
        self._place.pop()
        return text

    def _render_function_item(self, node):
        name, body = node.child_by_field_name("name"), node.child_by_field_name("body")
        head = self._between(node.start_byte, name.start_byte)
        if re.search(r"\b(const|extern|unsafe)\b", head):
            return self._of(node)
        self._place.append(self._of(name))
        result = node.child_by_field_name("return_type")
        values = values_of(self._of(result) if result else "()")
        if self._of(name) == "main" or not body.named_children:
            values = []
        returns = ""
        for value in values:
            if self._of(body).strip("{} \n") != value:
                number = self._number(f"return {value}")
                if number is not None:
                    returns += f" if {MODULE}::at({number}) {{ return {value}; }}"
        text = self._between(node.start_byte, body.start_byte)
        text += "{" + returns + self._inside(body)[1:]
        self._place.pop()
        return text

    def _render_binary_expression(self, node):
        if has_let(node):
            return self._inside(node)
        left, right = (self._of(node.child_by_field_name(side)) for side in ("left", "right"))
        operator = self._of(node.child_by_field_name("operator"))
        arms = []
        for other in OPERATORS.get(operator, []):
            number = self._number(f"{operator} to {other} in {self._short(node)}")
            if number is not None:
                arms.append((number, f"{number} => {left} {other} {right}, "))
        text = self._inside(node)
        if not arms:
            return text
        chosen = f"{MODULE}::of({arms[0][0]}, {arms[-1][0]})"
        return f"(match {chosen} {{ {''.join(arm for _, arm in arms)}_ => {text} }})"

    def _render_compound_assignment_expr(self, node):
        left, right = (self._of(node.child_by_field_name(side)) for side in ("left", "right"))
        operator = self._of(node.child_by_field_name("operator"))
        if operator not in ASSIGNMENTS:
            return self._inside(node)
        other = ASSIGNMENTS[operator]
        number = self._number(f"{operator} to {other} in {self._short(node)}")
        text = self._either(number, f"{left} {other} {right}", self._inside(node))
        # As a statement it needs no parentheses, which the compiler would take for a call.
        return text if number is None else text[1:-1]

    def _render_unary_expression(self, node):
        if not self._of(node).startswith("!"):
            return self._inside(node)
        number = self._number(f"without ! in {self._short(node)}")
        return self._either(number, self._of(node)[1:], self._inside(node))

    def _render_if_expression(self, node):
        condition = node.child_by_field_name("condition")
        text = self._render(condition)
        if condition.type not in COMPARES:
            number = self._number(f"negate {self._short(condition)}")
            if number is not None:
                text = f"({MODULE}::at({number}) ^ ({text}))"
        return self._inside(node, {condition.id: text})

    _render_while_expression = _render_if_expression

    def _render_match_block(self, node):
        arms = [child for child in node.named_children if child.type == "match_arm"]
        if arms and self._of(arms[-1].child_by_field_name("pattern")).strip() == "_":
            self._wild |= {arm.id for arm in arms[:-1]}
        return self._inside(node)

    def _render_match_arm(self, node):
        pattern = node.child_by_field_name("pattern")
        condition = pattern.child_by_field_name("condition")
        if condition is None:
            text = self._of(pattern)
            if node.id in self._wild:
                number = self._number(f"without the arm {self._short(pattern)}")
                if number is not None:
                    text += f" if !{MODULE}::at({number})"
        else:
            guard = self._render(condition)
            if not has_let(condition):
                always = self._number(f"always if {self._short(condition)}")
                never = self._number(f"never if {self._short(condition)}")
                guard = f"({guard})"
                if always is not None:
                    guard = f"({MODULE}::at({always}) || {guard})"
                if never is not None:
                    guard = f"(!{MODULE}::at({never}) && {guard})"
            text = self._between(pattern.start_byte, condition.start_byte) + guard
        return self._inside(node, {pattern.id: text})

    def _render_expression_statement(self, node):
        text = self._inside(node)
        core = node.named_children[0]
        while core.type in ("await_expression", "try_expression", "parenthesized_expression"):
            core = core.named_children[0]
        is_call = core.type in ("call_expression", "assignment_expression")
        if not is_call or not text.endswith(";") or text.startswith("drop("):
            return text
        number = self._number(f"without {self._short(node)}")
        return text if number is None else f"if !{MODULE}::at({number}) {{ {text} }}"

    def _render_call_expression(self, node):
        function = node.child_by_field_name("function")
        if function.type != "field_expression":
            return self._inside(node)
        field = function.child_by_field_name("field")
        method = self._of(field)
        if method == "is_empty":
            number = self._number(f"negate {self._short(node)}")
            text = self._inside(node)
            return text if number is None else f"({MODULE}::at({number}) ^ {text})"
        if method not in METHODS:
            return self._inside(node)
        other = METHODS[method]
        changed = self._between(node.start_byte, field.start_byte) + other
        changed += self._between(field.end_byte, node.end_byte)
        number = self._number(f"{method} to {other} in {self._short(node)}")
        return self._either(number, changed, self._inside(node))


def has_let(node):
    if node.type in ("let_condition", "let_chain"):
        return True
    if node.type in ("block", "closure_expression"):
        return False
    return any(has_let(child) for child in node.children)


def values_of(result):
    """What a function of this result may return in place of what it does."""
    result = re.sub(r"\s+", " ", result.strip())
    if result in VALUES:
        return VALUES[result]
    for pattern, values in VALUE_PATTERNS:
        if re.match(pattern, result):
            return values
    fallible = re.match(r"(?:\w+::)*Result<(.*)>$", result)
    if fallible:
        return [f"Ok({value})" for value in values_of(first_argument(fallible[1]))]
    return []


VALUES = {
    "()": ["()"],
    "bool": ["true", "false"],
    "f64": ["0.0"],
    "String": ["String::new()"],
    "&str": ['""'],
    "&'static str": ['""'],
    "Duration": ["std::time::Duration::ZERO"],
    "SystemTime": ["std::time::SystemTime::UNIX_EPOCH"],
    "fmt::Result": ["Ok(())"],
}
VALUE_PATTERNS = [
    (r"[ui](8|16|32|64|128|size)$", ["0", "1"]),
    (r"Option<", ["None"]),
    (r"Vec<", ["Vec::new()"]),
]


def first_argument(types):
    depth = 0
    for at, character in enumerate(types):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and depth == 0:
            return types[:at]
    return types


def switch(first, count):
    """The module that each root of a crate needs, for `count` changes from `first` on."""
    return SWITCH.replace("FIRST_NUMBER", str(first)).replace("COUNT_OF_ALL", str(count))


SWITCH = """
#[doc(hidden)]
#[allow(dead_code)]
pub(crate) mod mutation_switch {
    use std::{
        env,
        ffi::OsString,
        fs::OpenOptions,
        io::Write,
        path::Path,
        process,
        sync::{
            LazyLock,
            atomic::{AtomicBool, Ordering},
        },
    };

    const FIRST: u32 = FIRST_NUMBER;
    static CHOSEN: LazyLock<u32> = LazyLock::new(|| {
        env::var("RELQ_CHANGE").map_or(0, |number| number.parse().expect("a number"))
    });
    static FOLDER: LazyLock<Option<OsString>> = LazyLock::new(|| env::var_os("RELQ_REACHED"));
    static REACHED: [AtomicBool; COUNT_OF_ALL] = [const { AtomicBool::new(false) }; COUNT_OF_ALL];

    pub(crate) fn at(number: u32) -> bool {
        of(number, number) == number
    }

    pub(crate) fn of(first: u32, last: u32) -> u32 {
        if let Some(folder) = &*FOLDER {
            for number in first..=last {
                reached(folder, number);
            }
        }
        *CHOSEN
    }

    /// Writes at once, because the process may be killed.
    fn reached(folder: &OsString, number: u32) {
        if REACHED[(number - FIRST) as usize].swap(true, Ordering::Relaxed) {
            return;
        }
        let path = Path::new(folder).join(process::id().to_string());
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.and_then(|mut file| file.write_all(&number.to_le_bytes())).expect("written");
    }
}
"""
