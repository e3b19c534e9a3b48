use super::script::script_json;
use super::*;

#[test]
fn data_can_not_leave_the_script() {
    let hostile = "</script><script>alert(1)</script><!--&\n";
    let mut text = Vec::new();
    script_json(&mut text, &hostile).unwrap();
    assert!(!text.iter().any(|byte| b"<>&".contains(byte)));
    assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), hostile);
}

#[test]
fn no_text_reorders_what_the_page_shows() {
    let mut text = Vec::new();
    script_json(&mut text, &["a\u{202e}b\u{2066}\tü", "\u{2028}\u{61c}"]).unwrap();
    let shown: Vec<String> = serde_json::from_slice(&text).unwrap();
    assert_eq!(shown, ["a\u{fffd}b\u{fffd}\tü", "\u{fffd}\u{fffd}"]);
}

#[test]
fn headings_break_before_capitals_only() {
    assert_eq!(breakable("CovOnPass"), "Cov<wbr>On<wbr>Pass");
    assert_eq!(breakable("JDK <b>"), "JDK &lt;b&gt;");
}
