use super::*;

const NUMBERS: &str = "\
-- Numbers.
local ONE, TWO = 1, 2

local THREE = TWO
  + ONE
";

const SPEECH: &str = "\
-- Says a number.
local function say(number)
  return 'it is ' .. number
end
local function say_three()
  return say(THREE)
end
";

fn file(name: &'static str, text: &'static str) -> LibraryFile {
    LibraryFile { name, text }
}

fn pruned(script: &str) -> Result<String, String> {
    Library::new([file("numbers", NUMBERS), file("speech", SPEECH)]).pruned(script)
}

#[test]
fn unused_functions_are_left_out() {
    let say = "local function say(number)\n  return 'it is ' .. number\nend\n";

    assert_eq!(pruned("return 'say'").unwrap(), "");
    assert_eq!(pruned("-- Library: speech\nreturn say(5)").unwrap(), say);
}

#[test]
fn a_used_function_brings_those_that_it_uses_in_order() {
    let whole = [NUMBERS, SPEECH].concat().replace("\n\n", "\n");
    let whole = whole.replace("-- Numbers.\n", "").replace("-- Says a number.\n", "");

    assert_eq!(pruned("-- Library: speech\nreturn say_three()").unwrap(), whole);
}

#[test]
fn a_name_counts_where_it_is_code() {
    for script in ["return 1 -- ONE", "return 'ONE'", "return keys.ONE"] {
        assert_eq!(pruned(script).unwrap(), "", "{script}");
    }
    assert!(pruned("-- Library: numbers\nreturn 1 ..ONE").unwrap().contains("ONE"));
}

#[test]
fn the_head_names_the_files_that_are_used_and_no_others() {
    for (script, why) in [
        ("return say(5)", "uses `say`: add speech"),
        ("-- Library: numbers\nreturn say(ONE)", "uses `say`: add speech"),
        ("-- Library: numbers, speech\nreturn say(5)", "file numbers but does not"),
        ("-- Library: letters\nreturn 5", "file letters but does not"),
    ] {
        let error = pruned(script).unwrap_err();

        assert!(error.contains(why), "{script}: {error}");
    }
}

#[test]
fn every_line_of_a_file_is_part_of_a_definition() {
    for text in
        ["return 1\n", "local function one()\n  return 1\n\nend\n", "local ONE = 1"]
    {
        let error = Library::read([file("broken", text)]).unwrap_err();

        assert!(error.contains("the library file broken"), "{error}");
    }
}
