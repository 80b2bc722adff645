//! What the code of one module names: its `use` lines and every path, also those inside of macros and attributes.
//! Whatever is compiled only for tests is left out, wherever in the file it stands.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{
    Arm, Attribute, Field, ImplItem, Item, ItemMod, ItemUse, Macro, Meta, Stmt, Token, TraitItem, UseTree,
    Variant, Visibility,
};

/// A name that a `use` line brings into a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Import {
    /// What is imported; an empty first part stands for a leading `::`.
    pub path: Vec<String>,
    /// Its name here; `None` for all names of `path` (`*`).
    pub name: Option<String>,
    /// It is visible outside of this module: handed on.
    pub is_public: bool,
}

/// What is named in a module.
#[derive(Default)]
pub struct Names {
    /// Its `use` lines.
    pub imports: Vec<Import>,
    /// Paths in its code, of one part or more.
    pub paths: BTreeSet<Vec<String>>,
    /// Items that it defines.
    pub items: BTreeSet<String>,
}

/// Gathers [`Names`].
#[derive(Default)]
struct Gatherer {
    names: Names,
    modules: Vec<ItemMod>,
    /// Items around the one that is visited.
    depth: usize,
}

impl Names {
    /// Reads the items of a module; beside them, the modules that it declares, also those for tests.
    pub fn of(items: &[Item]) -> (Self, Vec<ItemMod>) {
        let mut gatherer = Gatherer::default();
        for item in items {
            gatherer.visit_item(item);
        }
        (gatherer.names, gatherer.modules)
    }

    fn add(&mut self, path: Vec<String>) {
        let is_keyword = |part: &String| matches!(part.as_str(), "self" | "super" | "crate" | "Self");
        if !path.iter().all(is_keyword) {
            self.paths.insert(path);
        }
    }

    fn add_use(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let with = |name: String| [before, &[name]].concat();
        match tree {
            UseTree::Path(path) => self.add_use(&path.tree, &with(path.ident.to_string()), is_public),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(tree, before, is_public));
            }
            UseTree::Glob(_) => self.imports.push(Import { path: before.to_vec(), name: None, is_public }),
            UseTree::Name(name) if name.ident == "self" => {
                let name = before.last().cloned();
                self.imports.push(Import { path: before.to_vec(), name, is_public });
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.imports.push(Import { path: with(name.clone()), name: Some(name), is_public });
            }
            UseTree::Rename(rename) => {
                let path =
                    if rename.ident == "self" { before.to_vec() } else { with(rename.ident.to_string()) };
                self.imports.push(Import { path, name: Some(rename.rename.to_string()), is_public });
            }
        }
    }

    /// Paths among tokens that nobody has parsed: arguments of macros and attributes.
    fn add_tokens(&mut self, tokens: TokenStream) {
        self.add_trees(&tokens.into_iter().collect::<Vec<_>>(), &[]);
    }

    fn add_trees(&mut self, trees: &[TokenTree], before: &[String]) {
        let mut at = 0;
        while at < trees.len() {
            match &trees[at] {
                TokenTree::Group(group) => {
                    self.add_tokens(group.stream());
                    at += 1;
                }
                TokenTree::Ident(_) => at = self.add_path_at(trees, at, before),
                _ => at += 1,
            }
        }
    }

    /// Takes the path that begins at a name; where it ends.
    fn add_path_at(&mut self, trees: &[TokenTree], begin: usize, before: &[String]) -> usize {
        let is =
            |at: usize, sign: char| matches!(trees.get(at), Some(TokenTree::Punct(p)) if p.as_char() == sign);
        let mut path = before.to_vec();
        let mut at = begin;
        while let Some(TokenTree::Ident(name)) = trees.get(at) {
            path.push(name.to_string());
            at += 1;
            if !(is(at, ':') && is(at + 1, ':')) {
                break;
            }
            match trees.get(at + 2) {
                Some(TokenTree::Ident(_)) => at += 2,
                // A list of names, as in `use`.
                Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<_> = group.stream().into_iter().collect();
                    self.add_trees(&inner, &path);
                    return at + 3;
                }
                _ => break,
            }
        }
        let behind = |sign| begin.checked_sub(1).is_some_and(|at| is(at, sign));
        let is_variable = behind('$') && path[before.len()] != "crate";
        // Fields, methods and lifetimes are no paths; `0..name` is one.
        let is_member = behind('.') && !begin.checked_sub(2).is_some_and(|at| is(at, '.'));
        if !(is_variable || is_member || behind('\'')) {
            self.add(path);
        }
        at
    }
}

/// Is what has these attributes compiled only for tests?
pub fn is_for_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("cfg") => {
            list.parse_args::<Meta>().is_ok_and(|condition| needs_test(&condition))
        }
        Meta::Path(path) => path.is_ident("test"),
        _ => false,
    })
}

/// Does this condition hold only in tests?
fn needs_test(condition: &Meta) -> bool {
    let parts = |list: &syn::MetaList| {
        list.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated).unwrap_or_default()
    };
    match condition {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("all") => parts(list).iter().any(needs_test),
        Meta::List(list) if list.path.is_ident("any") => {
            let parts = parts(list);
            !parts.is_empty() && parts.iter().all(needs_test)
        }
        _ => false,
    }
}

fn attributes_of(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::ExternCrate(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::ForeignMod(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::TraitAlias(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Union(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::TraitAlias(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// Leaves out a part that only tests see.
macro_rules! unless_for_tests {
    ($($visit:ident: $part:ty, $attributes:expr;)*) => {
        $(fn $visit(&mut self, part: &'ast $part) {
            let attributes: fn(&$part) -> &[Attribute] = $attributes;
            if !is_for_tests(attributes(part)) {
                visit::$visit(self, part);
            }
        })*
    };
}

impl<'ast> Visit<'ast> for Gatherer {
    fn visit_item(&mut self, item: &'ast Item) {
        // Modules are looked at all the same: their files belong to somebody.
        if let Item::Mod(module) = item {
            self.modules.push(module.clone());
            return;
        }
        if is_for_tests(attributes_of(item)) {
            return;
        }
        if self.depth == 0 {
            self.names.items.extend(name_of(item));
        }
        self.depth += 1;
        visit::visit_item(self, item);
        self.depth -= 1;
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let before = if item.leading_colon.is_some() { vec![String::new()] } else { Vec::new() };
        self.names.add_use(&item.tree, &before, !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts = path.segments.iter().map(|part| part.ident.to_string());
        let before = path.leading_colon.is_some().then(String::new);
        self.names.add(before.into_iter().chain(parts).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast Macro) {
        self.visit_path(&called.path);
        self.names.add_tokens(called.tokens.clone());
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::List(list) if !list.path.is_ident("cfg") => self.names.add_tokens(list.tokens.clone()),
            Meta::NameValue(pair) => self.visit_expr(&pair.value),
            _ => {}
        }
    }

    // `pub(in path)` names a place, and uses nothing of it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    unless_for_tests! {
        visit_impl_item: ImplItem, |part| match part {
            ImplItem::Const(part) => &part.attrs,
            ImplItem::Fn(part) => &part.attrs,
            ImplItem::Type(part) => &part.attrs,
            ImplItem::Macro(part) => &part.attrs,
            _ => &[],
        };
        visit_trait_item: TraitItem, |part| match part {
            TraitItem::Const(part) => &part.attrs,
            TraitItem::Fn(part) => &part.attrs,
            TraitItem::Type(part) => &part.attrs,
            TraitItem::Macro(part) => &part.attrs,
            _ => &[],
        };
        visit_stmt: Stmt, |part| match part {
            Stmt::Local(part) => &part.attrs,
            Stmt::Macro(part) => &part.attrs,
            Stmt::Expr(syn::Expr::Block(part), _) => &part.attrs,
            Stmt::Expr(syn::Expr::Call(part), _) => &part.attrs,
            Stmt::Expr(syn::Expr::MethodCall(part), _) => &part.attrs,
            _ => &[],
        };
        visit_arm: Arm, |part| &part.attrs;
        visit_field: Field, |part| &part.attrs;
        visit_variant: Variant, |part| &part.attrs;
    }
}
