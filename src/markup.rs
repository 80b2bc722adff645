//! What pictures (SVG) and pages (HTML) have in common.

/// Text as it stands between tags or in quotes, so that it can be nothing but text.
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c => safe.push(c),
        }
    }
    safe
}

/// The beginning of a diagram in SVG: its size, its style, a white ground, and its title at `left`. Sizes are
/// in units of the picture; `title` is plain text.
pub fn begin_diagram(width: f64, height: f64, style: &str, left: f64, title: &str) -> String {
    let title = escape(title);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">
<style>{style}</style>
<rect width="{width}" height="{height}" fill="#fff"/>
<text x="{left}" y="24" font-size="15">{title}</text>
"##
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_stays_text() {
        let svg = begin_diagram(10.0, 20.0, "", 1.0, "<script>'&\"");
        assert!(svg.contains(r#"viewBox="0 0 10 20""#));
        assert!(svg.contains(">&lt;script&gt;&#39;&amp;&quot;</text>"), "{svg}");
    }
}
