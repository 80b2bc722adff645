//! The faults of a source file: operators that are others, negations that are left out, guards that always or never hold,
//! arms that are never taken, functions that do nothing and return something.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr};

use crate::edits::{Edits, Id, Part};
use crate::values;

/// One way in which the program is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Its number, for the switch.
    pub id: Id,
    /// The source file, below the project.
    pub file: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The function around it, with its type if it has one.
    pub function: String,
    /// What was put in place of what.
    pub what: String,
    /// How many faults before it in the file say the same of the same function.
    pub nth: usize,
}

/// A file with its faults.
#[derive(Debug)]
pub struct Source {
    /// The file, below the project.
    pub file: PathBuf,
    /// Its text, without faults.
    pub text: String,
    /// Its faults.
    pub faults: Vec<Fault>,
    /// How they are written into it.
    pub edits: Edits,
}

/// All faults of a file, numbered from `first`.
///
/// # Errors
///
/// The text is no Rust.
pub fn find(file: &Path, text: String, first: Id) -> syn::Result<Source> {
    let parsed = syn::parse_file(&text)?;
    let mut finder = Finder {
        file,
        text: &text,
        next: first,
        faults: Vec::new(),
        alike: BTreeMap::new(),
        edits: Edits::default(),
        around: Vec::new(),
        in_trait_of_debugging: false,
    };
    finder.visit_file(&parsed);
    let (faults, edits) = (finder.faults, finder.edits);
    Ok(Source { file: file.to_path_buf(), text, faults, edits })
}

/// Is what has these attributes there for tests alone?
pub fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || attribute.path().is_ident("cfg")
                && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test")
    })
}

struct Finder<'t> {
    file: &'t Path,
    text: &'t str,
    next: Id,
    faults: Vec<Fault>,
    /// How many faults of a function say the same.
    alike: BTreeMap<(String, String), usize>,
    edits: Edits,
    around: Vec<String>,
    in_trait_of_debugging: bool,
}

/// What a binary operator may be mistaken for. Joules that are multiplied do not compile, and are taken out later.
fn others(operator: &BinOp) -> &'static [&'static str] {
    match operator {
        BinOp::Add(_) => &["-", "*"],
        BinOp::Sub(_) => &["+", "/"],
        BinOp::Mul(_) => &["+", "/"],
        BinOp::Div(_) => &["*", "%"],
        BinOp::Rem(_) => &["/", "+"],
        BinOp::Shl(_) => &[">>"],
        BinOp::Shr(_) => &["<<"],
        BinOp::BitAnd(_) => &["|", "^"],
        BinOp::BitOr(_) => &["&", "^"],
        BinOp::BitXor(_) => &["|", "&"],
        BinOp::Eq(_) => &["!="],
        BinOp::Ne(_) => &["=="],
        BinOp::Lt(_) => &["==", ">", "<="],
        BinOp::Gt(_) => &["==", "<", ">="],
        BinOp::Le(_) => &[">", "<"],
        BinOp::Ge(_) => &["<", ">"],
        BinOp::And(_) => &["||"],
        BinOp::Or(_) => &["&&"],
        BinOp::AddAssign(_) => &["-=", "*="],
        BinOp::SubAssign(_) => &["+=", "/="],
        BinOp::MulAssign(_) => &["+=", "/="],
        BinOp::DivAssign(_) => &["*=", "%="],
        BinOp::BitAndAssign(_) => &["|="],
        BinOp::BitOrAssign(_) => &["&=", "^="],
        BinOp::BitXorAssign(_) => &["|="],
        BinOp::ShlAssign(_) => &[">>="],
        BinOp::ShrAssign(_) => &["<<="],
        _ => &[],
    }
}

fn compares(operator: &BinOp) -> bool {
    matches!(
        operator,
        BinOp::Eq(_) | BinOp::Ne(_) | BinOp::Lt(_) | BinOp::Gt(_) | BinOp::Le(_) | BinOp::Ge(_)
    )
}

fn assigns(operator: &BinOp) -> bool {
    !compares(operator) && others(operator).iter().any(|other| other.ends_with('='))
}

/// Does this only say how much room there is to be?
fn reserves(function: &syn::Ident) -> bool {
    function == "with_capacity" || function == "reserve"
}

/// Is this a chain that binds names, as `a && let Some(b) = c`? It is no value.
fn binds(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(paren) => binds(&paren.expr),
        _ => false,
    }
}

impl Finder<'_> {
    fn fault(&mut self, at: Span, what: String) -> Id {
        let id = self.next;
        self.next += 1;
        let function = self.around.join("::");
        let alike = self.alike.entry((function.clone(), what.clone())).or_default();
        let nth = *alike;
        *alike += 1;
        self.faults.push(Fault {
            id,
            file: self.file.to_path_buf(),
            line: at.start().line,
            function,
            what,
            nth,
        });
        id
    }

    fn original(&self, of: Span) -> String {
        let text: Vec<&str> = self.text[of.byte_range()].split_whitespace().collect();
        let text = text.join(" ");
        match text.char_indices().nth(60) {
            Some((at, _)) => format!("{}...", &text[..at]),
            None => text,
        }
    }

    /// A fault for each operator that this one may be mistaken for.
    fn other_operators(&mut self, binary: &syn::ExprBinary) -> Vec<(Id, &'static str)> {
        let operator = &self.text[binary.op.span().byte_range()];
        let original = self.original(binary.span());
        let fault = |other: &&'static str| {
            (self.fault(binary.op.span(), format!("{other} for {operator} in {original}")), *other)
        };
        others(&binary.op).iter().map(fault).collect()
    }

    /// An operator whose sides are both evaluated: they are, once, and then one of the operators is.
    fn strict(&mut self, binary: &syn::ExprBinary) {
        let (left, right) = (binary.left.span().byte_range(), binary.right.span().byte_range());
        let operator = self.text[binary.op.span().byte_range()].to_owned();
        // What is compared is not moved.
        let (by, of) = if compares(&binary.op) { ("&(", "*") } else { ("(", "") };
        let ids = self.other_operators(binary);
        let group = self.edits.group(ids.iter().map(|(id, _)| *id).collect());
        self.edits.begin(group, left.start, vec![Part::Text(format!("(match ({by}"))]);
        self.edits.between(group, left.end..right.start, &format!("), {by}"));
        let mut parts = vec![Part::Text(")) { (l, r) => ".to_owned())];
        parts.extend(ids.iter().map(|(id, other)| Part::Fault(*id, format!("{of}l {other} {of}r"))));
        parts.push(Part::Text(format!("{{ {of}l {operator} {of}r }} }})")));
        self.edits.end(group, right.end, parts);
    }

    /// `&&` and `||`: whether the right side is evaluated depends on the left.
    fn lazy(&mut self, binary: &syn::ExprBinary) {
        let (left, right) = (binary.left.span().byte_range(), binary.right.span().byte_range());
        let is_and = matches!(binary.op, BinOp::And(_));
        let (operator, other) = if is_and { ("&&", "||") } else { ("||", "&&") };
        let original = self.original(binary.span());
        let id = self.fault(binary.op.span(), format!("{other} for {operator} in {original}"));
        let group = self.edits.group(vec![id]);
        // The right side is written once: it is evaluated if the left one is true (of &&), or, with the fault, if it is not.
        self.edits.begin(group, left.start, vec![Part::Text("(match (".to_owned())]);
        let decided = if is_and { "!" } else { "" };
        self.edits.between(
            group,
            left.end..right.start,
            &format!(") {{ l => if ({decided}l) != crate::faults_of_tests::is({id}) {{ l }} else {{ "),
        );
        self.edits.end(group, right.end, vec![Part::Text(" } })".to_owned())]);
    }

    fn assigned(&mut self, binary: &syn::ExprBinary) {
        let place = binary.left.span().byte_range();
        let right = binary.right.span().byte_range();
        let operator = self.text[binary.op.span().byte_range()].to_owned();
        let ids = self.other_operators(binary);
        let group = self.edits.group(ids.iter().map(|(id, _)| *id).collect());
        // The place is written for each operator, without faults inside it; the value once.
        let written = self.text[place.clone()].to_owned();
        self.edits.begin_in_place_of(group, place.start..right.start, "match (");
        let mut parts = vec![Part::Text(") { r => ".to_owned())];
        parts.extend(ids.iter().map(|(id, other)| Part::Fault(*id, format!("{written} {other} r"))));
        parts.push(Part::Text(format!("{{ {written} {operator} r }} }}")));
        self.edits.end(group, right.end, parts);
    }

    fn body(&mut self, name: String, signature: &syn::Signature, block: &syn::Block, place: Span) {
        self.around.push(name);
        let first = self.next;
        if signature.constness.is_none() {
            if !block.stmts.is_empty() {
                let values = values::of(&signature.output);
                let is_value = |value: &String| {
                    self.text[block.span().byte_range()].trim_matches(['{', '}', ' ', '\n']) == *value
                };
                let values: Vec<String> = values.into_iter().filter(|value| !is_value(value)).collect();
                let ids: Vec<(Id, String)> = values
                    .into_iter()
                    .map(|value| {
                        (self.fault(signature.ident.span(), format!("{value} for the whole body")), value)
                    })
                    .collect();
                if !ids.is_empty() {
                    let group = self.edits.group(ids.iter().map(|(id, _)| *id).collect());
                    let mut parts: Vec<Part> =
                        ids.iter().map(|(id, value)| Part::Fault(*id, format!("return {value};"))).collect();
                    parts.push(Part::Text("{}".to_owned()));
                    self.edits.begin(group, block.brace_token.span.open().byte_range().end, parts);
                }
            }
            visit::visit_block(self, block);
        }
        let ids = (first..self.next).collect();
        self.edits.function(place.byte_range(), ids);
        self.around.pop();
    }
}

impl<'a> Visit<'a> for Finder<'_> {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !is_for_tests(&item.attrs) {
            self.body(item.sig.ident.to_string(), &item.sig, &item.block, item.span());
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if !is_for_tests(&item.attrs) && !self.in_trait_of_debugging {
            self.body(item.sig.ident.to_string(), &item.sig, &item.block, item.span());
        }
    }

    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.body(item.sig.ident.to_string(), &item.sig, block, item.span());
        }
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if is_for_tests(&item.attrs) {
            return;
        }
        // How a value is printed for debugging is no arithmetic.
        let of = item
            .trait_
            .as_ref()
            .and_then(|(_, path, _)| path.segments.last())
            .map(|last| last.ident.to_string());
        self.in_trait_of_debugging = matches!(of.as_deref(), Some("Debug" | "Display"));
        self.around.push(self.original(item.self_ty.span()));
        visit::visit_item_impl(self, item);
        self.around.pop();
        self.in_trait_of_debugging = false;
    }

    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // What is evaluated while compiling has no environment to ask.
    fn visit_item_const(&mut self, _: &'a syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'a syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'a syn::ImplItemConst) {}
    fn visit_trait_item_const(&mut self, _: &'a syn::TraitItemConst) {}
    fn visit_item_enum(&mut self, _: &'a syn::ItemEnum) {}
    fn visit_item_struct(&mut self, _: &'a syn::ItemStruct) {}
    fn visit_type(&mut self, _: &'a syn::Type) {}
    fn visit_pat(&mut self, _: &'a syn::Pat) {}
    fn visit_generic_argument(&mut self, _: &'a syn::GenericArgument) {}
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}
    fn visit_expr_const(&mut self, _: &'a syn::ExprConst) {}

    // More or less room than needed: the values are the same.
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        let is_reserved = match &*call.func {
            Expr::Path(path) => path.path.segments.last().is_some_and(|last| reserves(&last.ident)),
            _ => false,
        };
        if !is_reserved {
            visit::visit_expr_call(self, call);
        }
    }

    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        if reserves(&call.method) {
            self.visit_expr(&call.receiver);
        } else {
            visit::visit_expr_method_call(self, call);
        }
    }

    fn visit_expr_repeat(&mut self, repeat: &'a syn::ExprRepeat) {
        self.visit_expr(&repeat.expr);
    }

    fn visit_expr_binary(&mut self, binary: &'a syn::ExprBinary) {
        match &binary.op {
            BinOp::And(_) | BinOp::Or(_) if binds(&binary.left) || binds(&binary.right) => {}
            BinOp::And(_) | BinOp::Or(_) => self.lazy(binary),
            operator if assigns(operator) => {
                self.assigned(binary);
                // Faults inside the place that is assigned to would be written several times.
                self.visit_expr(&binary.right);
                return;
            }
            _ => self.strict(binary),
        }
        visit::visit_expr_binary(self, binary);
    }

    fn visit_expr_unary(&mut self, unary: &'a syn::ExprUnary) {
        if matches!(unary.op, syn::UnOp::Not(_) | syn::UnOp::Neg(_)) && !matches!(*unary.expr, Expr::Lit(_)) {
            let operator = self.text[unary.op.span().byte_range()].to_owned();
            let what = format!("no {operator} in {}", self.original(unary.span()));
            let id = self.fault(unary.op.span(), what);
            let group = self.edits.group(vec![id]);
            let (from, to) = (unary.op.span().byte_range(), unary.expr.span().byte_range());
            self.edits.begin_in_place_of(group, from.start..to.start, "(match (");
            let end = vec![
                Part::Text(") { v => ".to_owned()),
                Part::Fault(id, "v".to_owned()),
                Part::Text(format!("{{ {operator}v }} }})")),
            ];
            self.edits.end(group, to.end, end);
        }
        visit::visit_expr_unary(self, unary);
    }

    fn visit_expr_match(&mut self, matched: &'a syn::ExprMatch) {
        let has_rest =
            matched.arms.iter().any(|arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none());
        for arm in &matched.arms {
            let is_rest = matches!(arm.pat, syn::Pat::Wild(_));
            match &arm.guard {
                Some((_, guard)) if !binds(guard) => {
                    let original = self.original(guard.span());
                    let always = self.fault(guard.span(), format!("true for the guard {original}"));
                    let never = self.fault(guard.span(), format!("false for the guard {original}"));
                    let group = self.edits.group(vec![always, never]);
                    let place = guard.span().byte_range();
                    let begin = vec![
                        Part::Text("(".to_owned()),
                        Part::Fault(always, "true".to_owned()),
                        Part::Fault(never, "false".to_owned()),
                        Part::Text("{ ".to_owned()),
                    ];
                    self.edits.begin(group, place.start, begin);
                    self.edits.end(group, place.end, vec![Part::Text(" })".to_owned())]);
                }
                None if has_rest && !is_rest => {
                    let never =
                        self.fault(arm.pat.span(), format!("never {}", self.original(arm.pat.span())));
                    let group = self.edits.group(vec![never]);
                    let guard = format!(" if !crate::faults_of_tests::is({never})");
                    self.edits.end(group, arm.pat.span().byte_range().end, vec![Part::Text(guard)]);
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, matched);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn written(text: &str) -> (Vec<String>, String) {
        let source = find(Path::new("src/a.rs"), text.to_owned(), 1).expect("Rust");
        let whats = source.faults.iter().map(|fault| fault.what.clone()).collect();
        let text = source.edits.write(&source.text, &BTreeSet::new()).text;
        syn::parse_file(&text).expect("is Rust still");
        (whats, text)
    }

    #[test]
    fn every_operator_of_a_nested_sum_has_its_faults() {
        let (whats, _) = written("fn f(a: u32, b: u32) -> u32 { a + b * 2 }");
        assert_eq!(
            whats,
            [
                "0 for the whole body",
                "1 for the whole body",
                "- for + in a + b * 2",
                "* for + in a + b * 2",
                "+ for * in b * 2",
                "/ for * in b * 2"
            ]
        );
    }

    #[test]
    fn what_is_for_tests_or_known_while_compiling_has_none() {
        let text = "#[cfg(test)] mod t { fn f() { a(); } } #[test] fn g() { b(); } const C: u32 = 1 + 2; \
                    const fn h() -> u32 { 1 + 2 } impl std::fmt::Debug for A { fn fmt(&self) -> u8 { 1 + 2 } }";
        assert_eq!(written(text).0, [""; 0]);
    }

    #[test]
    fn room_that_is_reserved_has_none() {
        let text = "fn f() { let mut a = Vec::with_capacity(n * 2); a.reserve(n + 1); g(n - 1); }";
        let expected = ["() for the whole body", "+ for - in n - 1", "/ for - in n - 1"];
        assert_eq!(written(text).0, expected);
    }

    #[test]
    fn faults_that_say_the_same_are_counted() {
        let text = "fn f() { g(a + b); g(a + b); } fn h() { g(a + b); }";
        let source = find(Path::new("src/a.rs"), text.to_owned(), 1).expect("Rust");
        let of_plus = source.faults.iter().filter(|fault| fault.what == "- for + in a + b");
        assert_eq!(of_plus.map(|fault| fault.nth).collect::<Vec<_>>(), [0, 1, 0]);
    }

    #[test]
    fn chains_that_bind_stay_chains() {
        let (whats, text) = written("fn f() { if a < b && let Some(c) = d && !e { g(); } }");
        assert_eq!(whats.len(), 1 + 3 + 1, "{whats:?}");
        assert!(text.contains("&& let Some(c) = d &&"), "{text}");
    }

    #[test]
    fn lazy_sides_stay_lazy_and_guards_and_arms_have_faults() {
        let (whats, _) = written("fn f() { match a { 1 if b || c => d, 2 => e, _ => x += y + 1 } }");
        let expected = [
            "() for the whole body",
            "true for the guard b || c",
            "false for the guard b || c",
            "never 2",
            "&& for || in b || c",
            "-= for += in x += y + 1",
            "*= for += in x += y + 1",
            "- for + in y + 1",
            "* for + in y + 1",
        ];
        assert_eq!(whats, expected);
    }
}
