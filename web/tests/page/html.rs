//! Reads the forms and links of a page, as far as the page writes them.

/// A form with one button.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) method: String,
    pub(crate) action: String,
    /// Its hidden fields, encoded.
    pub(crate) fields: String,
}

/// The form whose button has this label; `None` if there is none.
pub(crate) fn form(page: &str, label: &str) -> Option<Form> {
    let forms = page.split("<form").skip(1).map(|rest| rest.split("</form>").next());
    let form =
        forms.flatten().find(|form| form.contains(&format!(">{label}</button>")))?;
    let inputs = form.split("<input").skip(1).map(|it| it.split('>').next().unwrap());
    let pairs = inputs.map(|input| {
        let value = as_sent(&attribute(input, "value").unwrap_or_default());
        (attribute(input, "name").unwrap(), value)
    });
    let fields = pairs.map(|(name, value)| format!("{name}={}", encoded(&value)));
    Some(Form {
        method: attribute(form, "method").unwrap(),
        action: attribute(form, "action").unwrap(),
        fields: fields.collect::<Vec<_>>().join("&"),
    })
}

/// The address of the link with this text; `None` if there is none.
pub(crate) fn link(page: &str, text: &str) -> Option<String> {
    let links =
        page.split("<a ").skip(1).map(|rest| rest.split("</a>").next().unwrap());
    let link = links.into_iter().find(|it| it.ends_with(&format!(">{text}")))?;
    attribute(link, "href")
}

/// All addresses to which the page refers.
pub(crate) fn addresses(page: &str) -> Vec<String> {
    let quoted = |name: &str| {
        let begin = format!("{name}=\"");
        let values = page.split(begin.as_str()).skip(1);
        values.map(|it| decoded(it.split('"').next().unwrap())).collect::<Vec<_>>()
    };
    ["href", "src", "action", "data-live"].into_iter().flat_map(quoted).collect()
}

/// The text of the page, without its tags.
pub(crate) fn text(page: &str) -> String {
    page.split('<')
        .filter_map(|part| part.split_once('>'))
        .map(|(_, text)| text)
        .collect()
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!("{name}=\""))?;
    rest.split('"').next().map(decoded)
}

/// The value of a field as a browser sends it: with other line breaks, and without NUL.
fn as_sent(value: &str) -> String {
    let lines = value.replace("\r\n", "\n").replace('\r', "\n");
    lines.replace('\n', "\r\n").replace('\0', "\u{fffd}")
}

fn decoded(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&amp;", "&")
}

fn encoded(text: &str) -> String {
    let byte = |b: u8| match b {
        b if b.is_ascii_alphanumeric() => char::from(b).to_string(),
        b => format!("%{b:02X}"),
    };
    text.bytes().map(byte).collect()
}
